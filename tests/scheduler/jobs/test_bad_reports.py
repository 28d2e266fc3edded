"""A report that no database keeps is refused or marked, and the node that sent it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import Attempt, Node
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts, step
from tests.harness.sampling import mostly_on_demand
from trainer.protocol import PROTOCOL

pytestmark = pytest.mark.django_db
LONE = "\ud800"  # half of a pair: valid JSON, but no text
TOO_LARGE = [2**31, 2**53, 1e308, 10**400]


@pytest.mark.parametrize(
    "number", mostly_on_demand(TOO_LARGE, [TOO_LARGE[0]]), ids=["2^31", "2^53", "1e308", "10^400"]
)
@pytest.mark.parametrize(
    ("kind", "field"), [("step", "step"), ("start", "steps_total"), ("eval", "step"), ("checkpoint", "step")]
)
def test_a_step_that_no_column_keeps_is_refused_and_the_node_goes_on(
    node: FakeNode, kind: str, field: str, number: float
) -> None:
    world.placed_job(node)
    order = node.take_up()
    refused = node.run(order, {"kind": kind, "body": {field: number, "stored": "node"}}).claims[0]
    assert refused.error == "bad_report"
    assert field in refused.detail
    assert node.run(order, step(1)).claims[0].acked_seq == 2
    assert Attempt.objects.get().metrics.get().step == 1


@pytest.mark.parametrize("together", [True, False], ids=["in one sync", "apart"])
def test_a_step_beyond_the_last_one_is_refused_and_the_next_is_heard(node: FakeNode, together: bool) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    start = {"kind": "start", "body": {"steps_total": 50}}
    if together:
        node.run(order, start, step(51))
    else:
        node.run(order, start)
        assert node.run(order, step(51)).claims[0].error == "bad_report"
    node.run(order, step(50))
    job.refresh_from_db()
    assert (job.step, job.total_steps) == (50, 50)


@pytest.mark.parametrize("number", [1e308, 10**400], ids=["1e308", "10^400"])
@pytest.mark.parametrize("kind", ["memory", "result", "start"])
def test_a_measurement_beyond_all_reason_is_refused(node: FakeNode, kind: str, number: float) -> None:
    world.placed_job(node)
    order = node.take_up()
    body = {"step": 1, "memory_bytes": number, "peak_memory_bytes": number, "startup_s": number}
    assert node.run(order, {"kind": kind, "body": body}).claims[0].error == "bad_report"
    assert node.run(order, step(2)).claims[0].acked_seq == 2


@pytest.mark.parametrize("number", [10**400, -1, "much"], ids=["10^400", "-1", "text"])
def test_a_step_with_one_figure_that_cannot_be_is_kept_without_it(node: FakeNode, number: object) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    for number_of_step in (1, 2):
        report = step(number_of_step, loss=2.5, memory_bytes=number, step_s=number)
        assert node.run(order, report).claims[0].error == ""
    job.refresh_from_db()
    assert (job.step, job.loss) == (2, 2.5)
    kept = Attempt.objects.get().metrics.order_by("step")
    assert [(row.loss, row.memory_bytes) for row in kept] == [(2.5, None)] * 2
    (note,) = job.events.filter(type="job.metric_left_out")
    assert "step 1 is left out" in note.reason
    assert note.data["metric"] == "memory_bytes"


@pytest.mark.parametrize("text", ["\x00", LONE])
def test_versions_of_software_are_kept_with_a_mark_for_what_is_no_text(node: FakeNode, text: str) -> None:
    world.placed_job(node)
    order = node.take_up()
    node.run(order, {"kind": "result", "body": {"software": {f"torch{text}": f"2.13{text}"}}})
    mark = "\N{REPLACEMENT CHARACTER}"
    assert Attempt.objects.get().measured["software"] == {f"torch{mark}": f"2.13{mark}"}
    said = facts(software={f"torch{text}": "2.13"}, cannot_train={"qlora": f"no{text}"})
    node.sync(facts=said)
    row = Node.objects.get()
    assert (row.software, row.cannot_train) == ({f"torch{mark}": "2.13"}, {"qlora": f"no{mark}"})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gpus": [{"index": 0, "util": 10**400, "memory_used_bytes": 1}]}, "body.gpus[0].util"),
        ({"facts": {**facts(), "hostname": LONE}}, "body.facts.hostname"),
        ({"facts": {**facts(), "memory_bytes": 2**70}}, "body.facts.memory_bytes"),
    ],
)
def test_a_message_with_such_a_field_is_refused_by_its_name(
    node: FakeNode, change: dict[str, Any], field: str
) -> None:
    answer = node.post_sync({"protocol": PROTOCOL, "boot_id": "boot-1", "claims": [], **change})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


def test_a_claim_whose_id_is_none_is_like_a_claim_that_does_not_exist(node: FakeNode) -> None:
    reply = node.sync({"claim": "x", "fence": 1, "phase": "running"})
    assert (reply.claims[0].want, reply.claims[0].error) == ("stop", "stale_attempt")
    answer = node.client.get("/agent/v1/claims/x/inputs/train.jsonl?fence=1", headers=node.headers)
    assert answer.status_code == 404


def test_an_end_with_a_reason_that_is_no_text_is_refused_by_its_name(node: FakeNode) -> None:
    world.placed_job(node)
    order = node.take_up()
    said = node.say(order, "ended", outcome="error", reason=LONE)
    answer = node.post_sync({"protocol": PROTOCOL, "boot_id": "boot-1", "claims": [said]})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "body.claims[0].reason")
