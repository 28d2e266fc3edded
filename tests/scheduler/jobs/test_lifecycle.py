"""A job's life through the endpoint of the node agents.

Fences, budgets, stops, checkpoints and executions are tested.
"""

from __future__ import annotations

import pytest

from knowledge.models import Execution
from portal.events.types import MOVES
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Node
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step

pytestmark = [pytest.mark.django_db, pytest.mark.two_databases]


def test_a_job_runs_from_submission_to_one_execution(node: FakeNode) -> None:
    job = world.placed_job(node)
    assert world.state_of(job) == JobState.ASSIGNED
    order = node.take_up()
    assert world.state_of(job) == JobState.STARTING
    assert order.spec is not None
    assert order.spec.params["tuning"] == "lora"
    assert order.spec.params["per_device_batch_size"] >= 1
    assert b"".join(node.fetch(order, "train.jsonl").streaming_content) == world.training_lines()
    node.run(order, step(1), step(2, loss=1.8))
    job.refresh_from_db()
    assert (job.state, job.step, job.loss) == (JobState.RUNNING, 2, 1.8)
    node.end(order, "succeeded", result())
    assert world.state_of(job) == JobState.SUCCEEDED
    assert world.open_allocations() == 0
    execution = Execution.objects.get(attempt_id=job.attempts.get().pk)
    assert execution.status == "ok"
    assert execution.tokens_per_second == 1000.0
    assert execution.runtime_s is not None
    assert execution.predicted is not None


def test_version_counts_events_and_folding_them_gives_the_row(node: FakeNode) -> None:
    """I8"""
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    node.save_checkpoint(order, 1)
    node.end(order, "succeeded", result())
    job.refresh_from_db()
    events = list(job.events.all())
    assert [event.number for event in events] == list(range(1, job.version + 1))
    state = ""
    for event in events:
        assert event.old == state
        state = event.new
    assert (state, events[-1].stop_for, events[-1].fence) == (job.state, job.stop_for, job.fence)


def test_a_short_training_may_end_before_it_was_seen_running(node: FakeNode) -> None:
    """I3: only listed transitions happen even when everything arrives in one message."""
    job = world.placed_job(node)
    order = next(iter(node.orders.values()))
    node.end(order, "succeeded", step(1), result())
    assert world.state_of(job) == JobState.SUCCEEDED
    kinds = list(job.events.filter(number__gt=1, type__in=MOVES).values_list("new", flat=True))
    assert kinds == ["assigned", "starting", "running", "succeeded"]


def test_reports_count_once_however_often_they_come(node: FakeNode) -> None:
    """I11"""
    job = world.placed_job(node)
    order = node.take_up()
    said = node.say(order, "running", step(1), {"kind": "log", "body": {"text": "hello\n"}}, step(2))
    for _ in range(3):
        node.sync(said)
    attempt = job.attempts.get()
    assert attempt.metrics.count() == 2
    assert attempt.claims.get().log.count() == 1
    gap = {**said, "reports": [{"seq": 9, **step(9)}]}
    assert node.sync(gap).claims[0].acked_seq == 3
    assert attempt.metrics.count() == 2


def test_a_step_that_goes_back_is_refused_and_the_node_is_not_stuck(node: FakeNode) -> None:
    world.placed_job(node)
    order = node.take_up()
    node.run(order, step(5))
    reply = node.run(order, step(3), step(6))
    assert reply.claims[0].error == "bad_report"
    assert "step 3" in reply.claims[0].detail
    assert reply.claims[0].acked_seq == 3
    assert Attempt.objects.get().metrics.filter(step=6).exists()


def test_a_phase_that_goes_back_is_refused(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    assert node.sync(node.say(order, "starting")).claims[0].error == "bad_report"
    assert world.state_of(job) == JobState.RUNNING


def test_a_lost_node_frees_its_job_and_its_late_reports_change_nothing(node: FakeNode) -> None:
    """I5, I7, I20, F11"""
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    node.save_checkpoint(order, 1)
    world.silence(node, 1000)
    tick()
    job.refresh_from_db()
    assert (job.state, job.infrastructure_used, job.errors_used) == (JobState.QUEUED, 1, 0)
    assert Node.objects.get().state == NodeState.LOST
    assert world.open_allocations() == 0
    late = node.run(order, step(9))
    assert (late.claims[0].want, late.claims[0].error) == ("stop", "stale_attempt")
    assert Node.objects.get().state == NodeState.LOST  # it still runs what it should not
    assert node.upload(order, "output/adapter.bin", b"late").status_code == 409
    node.sync()
    assert Node.objects.get().state == NodeState.READY
    assert world.state_of(job) == JobState.QUEUED
    assert tick().started == 1
    resumed = node.take_up()
    assert resumed.fence == order.fence + 1
    assert resumed.spec is not None
    assert resumed.spec.resume is not None
    assert resumed.spec.resume.step == 1
    content = b"".join(node.fetch(resumed, "resume/weights.bin").streaming_content)
    assert content == b"weights at 1"


def test_a_killed_training_is_tried_again_within_the_infrastructure_budget(node: FakeNode) -> None:
    job = world.placed_job(node)
    for tries in range(1, 7):
        order = node.take_up()
        node.run(order, step(1))
        node.end(order, "killed", reason="Killed by signal 9.")
        expected = JobState.FAILED if tries == 6 else JobState.QUEUED
        assert world.state_of(job) == expected
        tick()
    assert job.failure_class == "system"
    assert Execution.objects.filter(attempt_id__isnull=False).count() == 6


def test_an_error_fails_the_job_unless_the_user_asked_for_retries(node: FakeNode) -> None:
    job = world.placed_job(node, retries=1)
    for expected in (JobState.QUEUED, JobState.FAILED):
        order = node.take_up()
        node.end(order, "error", reason="The file has no rows that fit.")
        assert world.state_of(job) == expected
        tick()
    assert job.failure_class == "user"
    assert job.failure_reason == "The file has no rows that fit."


def test_out_of_memory_is_tried_once_with_less_memory(node: FakeNode) -> None:
    job = world.placed_job(node)
    first = node.take_up()
    node.run(first, step(1))
    failed_option = job.attempts.get().option
    node.end(first, "oom", reason="Out of memory.")
    job.refresh_from_db()
    assert (job.state, job.oom_used, job.binding) == (JobState.QUEUED, 1, None)
    held = job.wait_code, job.wait_text
    assert held == ("options", "It ran out of memory; a configuration that needs less is being looked for.")
    assert tick().started == 0
    job.refresh_from_db()
    assert (job.wait_code, job.wait_text) == held
    refresh_options()
    job.refresh_from_db()
    assert (job.wait_code, job.wait_text) == ("", "")
    if job.state == JobState.FAILED:
        assert job.failure_class == "resource"
    else:
        assert tick().started == 1
        second = job.attempts.get(fence=2).option
        assert second["peak_memory_bytes"]["value"] < failed_option["peak_memory_bytes"]["value"]
    assert Execution.objects.get(attempt_id__isnull=False).status == "oom"


def test_out_of_memory_with_everything_fixed_fails_and_says_what_to_do(node: FakeNode) -> None:
    fixed = {"per_device_batch_size": 1, "gradient_accumulation_steps": 4, "number_gpus": 1,
             "effective_batch_size": 4, "gradient_checkpointing": True}  # fmt: skip
    job = world.placed_job(node, params=fixed)
    node.end(node.take_up(), "oom", reason="Out of memory.")
    refresh_options()
    assert world.state_of(job) == JobState.FAILED
    assert "Leave a parameter open" in job.failure_reason


def test_the_trainers_exact_count_brings_a_new_prediction(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    promised = job.attempts.get().option
    limit = promised["config"]["tokens_per_sample"]
    estimate = sum(min(size, limit) * rows for size, rows in job.training_file.lengths)
    counted = {"tokens_total": 1000, "row_tokens": estimate // 2, "steps_total": 7, "startup_s": 2.0}
    node.run(order, {"kind": "start", "body": counted})
    job.refresh_from_db()
    assert job.total_steps == 7
    prediction = job.attempts.get().prediction
    assert prediction is not None
    before = promised["duration_s"]["value"] - promised["startup_s"]
    assert prediction["duration_s"]["value"] - prediction["startup_s"] < before
    assert prediction["padded_tokens"] == pytest.approx(promised["padded_tokens"] / 2, rel=0.1)
    assert prediction["startup_s"] < 5  # what it took, not what was expected
