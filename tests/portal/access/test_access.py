"""Permissions beyond the matrix of tests/portal/access.

The tests cover the texts of the answers and the effects of the requests.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import AuditEntry, User
from portal.node_package import join_command
from scheduler.loop.tick import tick
from scheduler.models import Node
from tests.harness import world
from trainer.protocol import PROTOCOL

JOB_READS = ("", "events/", "metrics/", "logs/", "artifacts/", "artifacts/adapter/model.bin")


@pytest.mark.parametrize("part", JOB_READS)
def test_a_strangers_job_answers_as_one_that_does_not_exist(
    part: str, stranger: APIClient, person: User
) -> None:
    job = world.job(person)
    foreign = stranger.get(f"/api/jobs/{job.pk}/{part}")
    missing = stranger.get(f"/api/jobs/ftjob-none/{part}")
    assert foreign.status_code == missing.status_code == 404
    answer = foreign.json()["error"]["message"].replace(job.pk, "ftjob-none")
    assert answer == missing.json()["error"]["message"]


def test_a_stranger_sees_neither_file_nor_uses_it(stranger: APIClient, person: User) -> None:
    file = world.data_file(person)
    assert stranger.get(f"/api/files/{file.pk}/").status_code == 404
    assert stranger.get("/api/files/").json()["data"] == []
    body = {"model": "builtin/tiny-llama", "training_file": file.pk}
    answer = stranger.post("/api/jobs/", body, format="json")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["training_file"])


def test_an_administrator_sees_everything(admin_api: APIClient, person: User) -> None:
    job = world.job(person)
    assert admin_api.get(f"/api/jobs/{job.pk}/").status_code == 200


def test_an_administrator_drains_and_resumes_a_node(admin_api: APIClient) -> None:
    path = f"/api/nodes/{world.fake_node().node_id}/"
    drained = admin_api.post(path + "drain/", {"reason": "new disk", "move_jobs": True}, format="json")
    assert (drained.status_code, drained.json()["state"], drained.json()["reason"]) == (
        200,
        "draining",
        "new disk",
    )
    again = admin_api.post(path + "drain/", {"reason": "older disk"}, format="json")
    assert (again.status_code, again.json()["reason"]) == (200, "new disk")
    for _ in range(2):
        resumed = admin_api.post(path + "resume/", {}, format="json")
        assert (resumed.status_code, resumed.json()["state"]) == (200, "ready")
    for verb in ("drained", "resumed"):
        assert AuditEntry.objects.filter(action=f"node {verb}").count() == 1


def test_an_administrator_removes_a_drained_node(admin_api: APIClient) -> None:
    path = f"/api/nodes/{world.fake_node().node_id}/"
    assert admin_api.delete(path).status_code == 409
    admin_api.post(path + "drain/", {}, format="json")
    tick()
    assert admin_api.delete(path).status_code == 204
    assert admin_api.get(path).status_code == 404
    assert admin_api.delete(path).status_code == 404
    assert admin_api.get("/api/nodes/").json()["data"] == []


def test_a_join_token_is_shown_and_lets_a_node_in(admin_api: APIClient) -> None:
    payload = admin_api.post("/api/nodes/join-tokens/", {"uses": 1}, format="json").json()
    token = payload["join_token"]
    assert payload["command"] == join_command(portal="http://testserver", token=token)
    body = {"join_token": token, "protocol": PROTOCOL, "name": "n", "facts": {}}
    answer = Client().post("/agent/v1/enrol", body, content_type="application/json")
    assert answer.status_code == 400, "the token passed; the empty facts did not"


def test_nodes_show_which_gpus_are_free(api: APIClient, person: User) -> None:
    node = world.fake_node(slots=3)
    world.placed_job(node, owner=person, params={"number_gpus": 1})
    shown = api.get("/api/nodes/").json()["data"][0]
    assert shown["free_gpus"] == 2
    assert sorted(gpu["busy"] for gpu in shown["gpus"]) == [False, False, True]
    assert api.get(f"/api/nodes/{shown['id']}/").json()["id"] == shown["id"]
    assert api.get("/api/nodes/node-none/").status_code == 404


def test_nodes_come_in_pages_and_are_filtered(api: APIClient) -> None:
    names = [Node.objects.get(pk=world.fake_node().node_id).name for _ in range(3)]
    first = api.get("/api/nodes/?limit=2").json()
    assert (first["total"], first["has_more"]) == (3, True)
    second = api.get(f"/api/nodes/?limit=2&after={first['next']}").json()
    assert sorted(node["name"] for node in first["data"] + second["data"]) == sorted(names)
    assert api.get("/api/nodes/?state=lost").json()["data"] == []
    assert api.get("/api/nodes/?gpu=cpu").json()["total"] == 3
    assert [node["name"] for node in api.get(f"/api/nodes/?text={names[1]}").json()["data"]] == [names[1]]
    assert api.get("/api/nodes/?state=asleep").status_code == 400


def test_a_session_speaks_for_its_person_and_needs_the_csrf_token(person: User) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(person)
    assert client.get("/api/me/").json()["username"] == "ada"
    refused = client.post("/api/tokens/", {"name": "x"}, format="json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "permission_denied")


def test_a_price_is_changed_if_nobody_else_did_meanwhile(admin_api: APIClient) -> None:
    path = f"/api/nodes/{world.fake_node().node_id}/"

    def ask(price: object, seen: float = 2.5) -> tuple[int, Any]:
        body = {"price_per_gpu_hour": price, "seen": {"price_per_gpu_hour": seen}}
        answer = admin_api.patch(path, body, format="json")
        return answer.status_code, answer.json()

    status, node = ask(2.5, seen=0)
    assert (status, node["price_per_gpu_hour"]) == (200, 2.5)
    status, answer = ask(3, seen=0)
    assert (status, answer["error"]["code"]) == (409, "conflict")
    for price in (-1, 1e7, "2", None, True):
        status, answer = ask(price)
        assert (status, list(answer["error"]["fields"])) == (400, ["price_per_gpu_hour"])
    assert ask(2.5)[0] == 200, "it costs that already"
    assert AuditEntry.objects.filter(action="node price changed").count() == 1


def test_predictors_are_promoted_and_rolled_back_by_administrators(admin_api: APIClient) -> None:
    assert admin_api.post("/api/predictors/pred-7/promote/").status_code == 404
    refused = admin_api.post("/api/predictors/roll-back/", {}, format="json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    wrong = admin_api.post("/api/predictors/roll-back/", {"seen": "2"}, format="json")
    assert (wrong.status_code, list(wrong.json()["error"]["fields"])) == (400, ["seen"])
