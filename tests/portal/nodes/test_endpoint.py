"""Bad input at the endpoint of the node agents."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from portal.accounts.models import AuditEntry
from portal.clock import database_now
from scheduler.models import Artifact, JoinToken, Metric, Node
from scheduler.services.nodes.register import create_join_token
from scheduler.states import NodeState
from tests.harness import world
from tests.harness.fake_node import PROTOCOL, FakeNode, facts, step

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> FakeNode:
    return world.fake_node()


def sync_body(**more: Any) -> dict[str, Any]:
    return {"protocol": PROTOCOL, "boot_id": "boot-1", "claims": [], **more}


def enrol(body: Any) -> Any:
    return Client().post("/agent/v1/enrol", json.dumps(body), content_type="application/json")


def test_a_join_token_serves_once_and_not_for_ever() -> None:
    token = create_join_token(actor=world.admin(), now=database_now())
    body = {"join_token": token, "protocol": PROTOCOL, "name": "a", "facts": facts()}
    assert enrol(body).status_code == 201
    assert enrol(body).status_code == 401
    late = create_join_token(actor=world.admin(), now=database_now() - timedelta(hours=2))
    assert enrol({**body, "join_token": late}).status_code == 401
    assert Node.objects.count() == 1
    assert JoinToken.objects.filter(token_hash=token).count() == 0  # only digests are kept


@pytest.mark.parametrize("token", ["", "fnode-wrong", "Basic x"])
def test_a_wrong_node_token_is_refused_and_noted(node: FakeNode, token: str) -> None:
    node.token = token
    answer = node.post_sync(sync_body())
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    node.post_sync(sync_body())
    refusals = AuditEntry.objects.filter(action="node token refused")
    assert refusals.count() == 1, "whoever asks again and again does not fill the record"
    refusals.update(at=F("at") - timedelta(hours=1))
    node.post_sync(sync_body())
    assert refusals.count() == 2


def test_an_old_agent_hears_that_it_is_old_whatever_else_it_says(node: FakeNode) -> None:
    answer = node.post_sync({"protocol": 0, "something": "else"})
    assert answer.status_code == 426
    assert answer.json()["error"]["supported"] == [PROTOCOL]


def test_unknown_fields_are_ignored(node: FakeNode) -> None:
    assert node.post_sync(sync_body(from_the_future={"a": 1})).status_code == 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"boot_id": 3}, "body.boot_id"),
        ({"claims": {}}, "body.claims"),
        ({"claims": [{"claim": "x", "fence": 1, "phase": "dancing"}]}, "body.claims[0].phase"),
        ({"claims": [{"claim": "x", "fence": 1, "phase": "ended"}]}, "body.claims[0].outcome"),
        ({"claims": [{"claim": "x", "fence": True, "phase": "running"}]}, "body.claims[0].fence"),
        ({"gpus": [{"index": -1}]}, "body.gpus[0].index"),
        ({"facts": {"hostname": "h", "cores": 1, "memory_bytes": 1, "gpus": []}}, "body.facts.gpus"),
        ({"protocol": "1"}, "body.protocol"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_stored(node: FakeNode, change: Any, field: str) -> None:
    answer = node.post_sync(sync_body(**change))
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == field


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(node: FakeNode, raw: bytes) -> None:
    answer = node.client.post("/agent/v1/sync", raw, content_type="application/json", headers=node.headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_another_nodes_claim_is_like_none_and_noted(node: FakeNode) -> None:
    """I16"""
    world.placed_job(node)
    order = node.take_up()
    other = world.fake_node()
    reply = other.sync(other.say(order, "running", step(1)))
    assert reply.claims[0].error == "stale_attempt"
    assert other.fetch(order, "train.jsonl").status_code == 404
    assert other.upload(order, "output/x.bin", b"x").status_code == 404
    assert AuditEntry.objects.filter(action="foreign claim asked for").count() == 3
    assert not Metric.objects.exists()


def test_a_stale_fence_gets_its_own_error_and_the_rest_counts(node: FakeNode) -> None:
    world.placed_job(node)
    order = node.take_up()
    stale = {**node.say(order, "running", step(1)), "fence": order.fence + 1}
    reply = node.sync(stale, gpus=[{"index": 0, "util": 0.5, "memory_used_bytes": 10}])
    assert reply.claims[0].error == "stale_attempt"
    assert not Metric.objects.exists()
    assert Node.objects.get().gpus.get(index=0).util == 0.5


def test_a_flood_of_reports_is_refused_and_a_huge_log_piece_is_cut_with_a_mark(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    flood = node.say(order, "running", *[step(n) for n in range(1, 600)])
    answer = node.post_sync(sync_body(claims=[flood]))
    assert answer.status_code == 413
    node.seqs.clear()
    node.run(order, {"kind": "log", "body": {"text": "x" * 200_000}})
    piece = job.attempts.get().claims.get().log.get()
    assert len(piece.text) < 70_000
    assert "cut here" in piece.text


def test_logs_keep_control_characters_but_no_nul(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, {"kind": "log", "body": {"text": "a\x00b\x1b[31m"}})
    assert job.attempts.get().claims.get().log.get().text == "a\N{REPLACEMENT CHARACTER}b\x1b[31m"


def test_changed_gpus_block_the_node(node: FakeNode) -> None:
    node.sync(facts=facts(slots=3))
    row = Node.objects.get()
    assert row.state == NodeState.BLOCKED
    assert "with the new GPU 2 (cpu)" in row.reason
    node.sync()
    assert Node.objects.get().state == NodeState.BLOCKED


def test_two_agents_with_one_identity_block_the_node(node: FakeNode) -> None:
    node.sync()
    node.boot_id = "boot-2"  # a restart
    node.sync()
    assert Node.objects.get().state == NodeState.READY
    for _ in range(3):  # the other agent is still there
        node.sync()
        answer = node.post_sync({"protocol": PROTOCOL, "boot_id": "boot-1", "claims": []})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "superseded")
    assert Node.objects.get().state == NodeState.BLOCKED


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", ".hidden", "a//b", "a/%00", "x" * 301])
def test_an_artifact_path_that_leaves_its_folder_is_refused(node: FakeNode, path: str) -> None:
    world.placed_job(node)
    order = node.take_up()
    assert node.upload(order, path, b"x").status_code in (400, 404)
    assert not Artifact.objects.exists()


def test_an_artifact_needs_its_digest_and_may_come_twice(node: FakeNode) -> None:
    world.placed_job(node)
    order = node.take_up()
    assert node.upload(order, "output/a.bin", b"content", digest="0" * 64).status_code == 400
    assert node.upload(order, "output/a.bin", b"content", digest="zz").status_code == 400
    assert not Artifact.objects.exists()
    for _ in range(2):
        assert node.upload(order, "output/a.bin", b"content").status_code == 204
    assert Artifact.objects.get().bytes == 7


def test_inputs_end_with_the_attempt(node: FakeNode) -> None:
    """I16"""
    world.placed_job(node)
    order = node.take_up()
    assert node.fetch(order, "train.jsonl").status_code == 200
    assert node.fetch(order, "passwords").status_code == 404
    node.end(order, "error", reason="x")
    assert node.fetch(order, "train.jsonl").status_code == 409


def test_wrong_methods_and_query_are_answered_in_json(node: FakeNode) -> None:
    assert node.client.get("/agent/v1/sync").json()["error"]["code"] == "method_not_allowed"
    world.placed_job(node)
    order = node.take_up()
    answer = node.client.get(
        f"/agent/v1/claims/{order.claim}/inputs/train.jsonl?fence=-1", headers=node.headers
    )
    assert answer.status_code == 400
