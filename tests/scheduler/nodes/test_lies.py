"""A node's word is held against the job's plan and against what hardware is."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.models import Execution
from portal.clock import database_now
from portal.events.models import Event
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Checkpoint, Claim, Job, LogPiece, Node
from scheduler.services.nodes.state import resume_node
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts, gpu_facts, result, step
from trainer.protocol import ClaimOrder, ProtocolError
from trainer.protocol_parsing import parse_facts

pytestmark = pytest.mark.django_db
START = {"kind": "start", "body": {"steps_total": 100}}
FILE = {"path": "weights.safetensors", "sha256": "0" * 64, "bytes": 5}
HUGE = 1e18


def begun(node: FakeNode) -> tuple[Job, ClaimOrder]:
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, START)
    return job, order


def told(kind: str, **body: Any) -> dict[str, Any]:
    return {"kind": kind, "body": body}


def state() -> str:
    row = Node.objects.get()
    return row.block_kind if row.state == NodeState.BLOCKED else row.state


LIES = {
    "a start-up below 0": told("start", startup_s=-5),
    "a training below 0": told("result", train_s=-1.0),
    "a training of ages": told("result", runtime_s=1e12),
    "more tokens than there are": told("start", tokens_total=HUGE),
    "more tokens in rows": told("start", row_tokens=HUGE),
    "more rows than the file": told("start", rows=1e17),
    "more steps than rows": told("start", steps_total=10**9),
    "a rate of a result": told("result", tokens_per_s=HUGE),
    "a step beyond the last": told("step", step=101),
    "an evaluation beyond it": told("eval", step=10**9, eval_loss=1.0),
    "a checkpoint beyond it": told("checkpoint", step=10**9, stored="node", files=[FILE]),
    "a checkpoint that is gone beyond it": told("checkpoint", step=101, stored="gone"),
    "a checkpoint of an exabyte": told("checkpoint", step=10, stored="node", files=[FILE | {"bytes": 2**52}]),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_what_cannot_be_is_refused_and_kept_as_an_event(node: FakeNode, lie: dict[str, Any]) -> None:
    job, order = begun(node)
    before = Attempt.objects.get().measured
    assert node.run(order, lie).claims[0].error == "bad_report"
    assert Attempt.objects.get().measured == before
    assert not Checkpoint.objects.exists()
    event = Event.objects.get(type="node.implausible")
    assert job.pk in event.reason
    assert event.is_private
    assert node.run(order, step(11)).claims[0].error == "", "what is right still counts"


def test_a_node_that_lies_a_few_times_is_blocked_until_an_administrator_has_looked(node: FakeNode) -> None:
    _, order = begun(node)
    for number in range(10):
        node.run(order, told("step", step=1000 + number))
        assert state() == ("ready" if number < 2 else "implausible-reports")
    row = Node.objects.get()
    assert "step 1002 lies beyond" in row.reason
    assert "1002" not in row.public_reason
    assert Event.objects.filter(type="node.implausible").count() == 3
    assert Event.objects.filter(type="node.blocked").count() == 1
    world.silence(node, 1000)
    tick()
    node.sync()
    assert state() == "implausible-reports", "silence heals nothing"
    resume_node(node=Node.objects.get(), actor=world.admin(), reason="New agent.", now=database_now())
    assert state() == "ready"


def test_a_success_that_cannot_be_is_not_believed_and_the_job_runs_again(node: FakeNode) -> None:
    job, order = begun(node)
    node.run(order, step(40))
    node.end(order, "succeeded", result(step=40))
    assert world.state_of(job) == JobState.QUEUED
    attempt = Attempt.objects.get()
    assert (attempt.outcome, "at step 40 of 100" in attempt.reason) == ("lost", True)
    assert "at step 40 of 100" in Event.objects.get(type="node.implausible").reason


def test_a_success_without_an_output_is_not_believed(node: FakeNode) -> None:
    job, order = begun(node)
    node.upload(order, "log.txt", b"all is well")
    node.save_checkpoint(order, 100)
    node.begun.clear()  # no output
    node.end(order, "succeeded", step(100), result(step=100))
    assert (world.state_of(job), Attempt.objects.get().outcome) == (JobState.QUEUED, "lost")


def test_an_honest_success_is_one(node: FakeNode) -> None:
    job, order = begun(node)
    node.end(order, "succeeded", step(100), result(step=100))
    assert world.state_of(job) == JobState.SUCCEEDED
    assert not Event.objects.filter(type="node.implausible").exists()


def test_figures_that_no_machine_reaches_are_left_out_and_not_learnt_from(node: FakeNode) -> None:
    job, order = begun(node)
    lie = step(10, rate=HUGE, memory_bytes=10**18)
    assert node.run(order, lie).claims[0].error == ""
    assert node.run(order, told("memory", memory_bytes=10**17)).claims[0].error == ""
    job.refresh_from_db()
    assert job.tokens_per_second is None
    assert not Attempt.objects.get().peak_memory_bytes
    assert job.events.filter(type="job.metric_left_out").count() == 2
    node.end(order, "stopped")
    execution = Execution.objects.get()
    assert (execution.learn, execution.peak_memory_bytes) == (False, None)


def test_a_rate_above_the_hardwares_peak_is_kept_and_not_learnt_from(node: FakeNode) -> None:
    _, order = begun(node)
    node.end(order, "succeeded", step(100, rate=9e8), result(step=100, tokens_per_s=9e8))
    execution = Execution.objects.get()
    assert (execution.learn, "above the hardware's peak" in execution.flag_reason) == (False, True)


def test_repeated_facts_are_one_event(node: FakeNode) -> None:
    job, order = begun(node)
    kept = told("checkpoint", step=20, stored="node", files=[FILE])
    node.run(order, kept)
    before = job.events.count()
    for _ in range(5):
        node.run(order, *[told("checkpoint", step=1, stored="gone")] * 10, *[kept] * 10)
    assert job.events.count() == before
    node.run(order, *[told("checkpoint", step=20, stored="gone")] * 20)
    assert job.events.count() == before + 1


def test_a_log_without_end_is_kept_up_to_a_size_and_later_attempts_have_room(
    node: FakeNode, settings: Any
) -> None:
    settings.JOB_LOG_BYTES = 40_000
    job, order = begun(node)
    for _ in range(10):
        node.run(order, *[told("log", text="x" * 3000)] * 4)
    claim = Claim.objects.get()
    assert (claim.log_bytes, claim.log_left_out_bytes) == (18_000, 102_000)
    assert "longer than the portal keeps" in LogPiece.objects.order_by("-pk")[0].text
    assert LogPiece.objects.count() == 7
    node.end(order, "lost")
    tick()
    again = node.take_up()
    node.run(again, *[told("log", text="x" * 3000)] * 10)
    assert [one.log_bytes for one in Claim.objects.filter(attempt__job=job).order_by("attempt__fence")] == [
        18_000, 9_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "field"),
    [
        (gpu_facts(*[f"GPU-{number:08x}" for number in range(1, 66)]), "facts.gpus"),
        (facts(slots=1024) | {"cores": 8}, "facts.gpus"),
        (facts() | {"memory_bytes": 10**18 // 256}, "facts.memory_bytes"),
        (facts(memory_bytes=2**43), "facts.gpus[0].memory_bytes"),
        (facts() | {"cores": 100_000}, "facts.cores"),
    ],
    ids=["65 GPUs", "slots without cores", "memory", "memory of a GPU", "cores"],
)
def test_a_machine_that_cannot_be_does_not_join(said: dict[str, Any], field: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse_facts(said)
    assert refused.value.path == field


def test_an_uploaded_checkpoint_has_the_size_that_was_told(node: FakeNode) -> None:
    _, order = begun(node)
    node.save_checkpoint(order, 10)
    assert Checkpoint.objects.count() == 1
    content_of = Checkpoint.objects.get().files[0]
    lie = told("checkpoint", step=10, stored="portal", files=[content_of | {"bytes": 2**40}])
    assert node.run(order, lie).claims[0].error == "bad_report"
