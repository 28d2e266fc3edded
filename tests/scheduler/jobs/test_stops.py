"""Stops in the life of a job.

Cancel, pause, drain and deadlines are tested, with the checkpoints they leave.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from knowledge.models import Execution
from portal.clock import database_now
from portal.events.models import Event
from scheduler.errors import IllegalTransition
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Checkpoint, Claim, Node
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job
from scheduler.services.nodes.state import drain_node
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step

pytestmark = pytest.mark.django_db


def test_cancelling_a_running_job_stops_its_node_and_frees_the_gpus(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    cancel_job(job=job, actor=job.owner, now=database_now())
    cancel_job(job=job, actor=job.owner, now=database_now())  # twice changes nothing
    reply = node.sync(node.say(order, "running"))
    assert (reply.claims[0].want, reply.claims[0].stop_for) == ("stop", "cancel")
    node.end(order, "stopped")
    assert world.state_of(job) == JobState.CANCELLED
    assert world.open_allocations() == 0


def test_an_accepted_cancel_ends_as_cancelled_even_if_the_training_finished(node: FakeNode) -> None:
    """I12, cancel first"""
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    cancel_job(job=job, actor=job.owner, now=database_now())
    node.end(order, "succeeded", result())
    assert world.state_of(job) == JobState.CANCELLED


def test_a_cancel_after_the_end_is_refused_and_noted(node: FakeNode) -> None:
    """I12, finish first; I2"""
    job = world.placed_job(node)
    node.end(node.take_up(), "succeeded", result())
    with pytest.raises(IllegalTransition):
        cancel_job(job=job, actor=job.owner, now=database_now())
    assert world.state_of(job) == JobState.SUCCEEDED
    assert Event.objects.filter(subject=job.pk, type="job.cancel_too_late").count() == 1


def test_pause_saves_and_resume_goes_on_from_the_checkpoint(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(4))
    pause_job(job=job, actor=job.owner, now=database_now())
    assert node.sync(node.say(order, "running")).claims[0].stop_for == "pause"
    node.save_checkpoint(order, 4)
    node.end(order, "stopped")
    assert world.state_of(job) == JobState.PAUSED
    assert tick().started == 0
    resume_job(job=job, actor=job.owner, now=database_now())
    assert tick().started == 1
    again = node.take_up()
    assert again.spec is not None
    assert again.spec.resume is not None
    assert again.spec.resume.step == 4


@pytest.mark.parametrize(("outcome", "spent"), [("error", "errors_used"), ("oom", "oom_used")])
def test_a_job_that_fails_while_it_is_paused_is_not_tried_again_before_it_is_resumed(
    node: FakeNode, outcome: str, spent: str
) -> None:
    job = world.placed_job(node, retries=1)
    order = node.take_up()
    node.run(order, step(1))
    pause_job(job=job, actor=job.owner, now=database_now())
    node.end(order, outcome, reason="It broke.")
    refresh_options()
    assert tick().started == 0
    assert world.state_of(job) == JobState.PAUSED
    assert getattr(job, spent) == 1
    resume_job(job=job, actor=job.owner, now=database_now())
    refresh_options()
    assert tick().started == 1


def test_a_job_that_fails_while_it_is_paused_and_has_no_retries_has_failed(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    pause_job(job=job, actor=job.owner, now=database_now())
    node.end(order, "error", reason="The file has no rows that fit.")
    assert world.state_of(job) == JobState.FAILED


def test_a_stop_that_nobody_confirms_ends_the_attempt_and_blocks_the_node(node: FakeNode) -> None:
    """L4, I5"""
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    cancel_job(job=job, actor=job.owner, now=database_now())
    world.age_state(job, 1000)
    tick()
    assert world.state_of(job) == JobState.CANCELLED
    assert job.attempts.get().outcome == "lost"
    assert Node.objects.get().state == NodeState.BLOCKED
    node.run(order)
    assert Node.objects.get().state == NodeState.BLOCKED
    node.sync()
    assert Node.objects.get().state == NodeState.READY


@pytest.mark.parametrize("phase", ["assigned", "starting"])
def test_states_with_a_deadline_end(node: FakeNode, phase: str) -> None:
    """L4"""
    job = world.placed_job(node)
    if phase == "starting":
        node.take_up()
    world.age_state(job, 10_000)
    tick()
    attempt = job.attempts.get(fence=1)
    assert attempt.outcome == "timeout"
    assert Execution.objects.filter(attempt_id=attempt.pk).exists() == (phase == "starting")


def test_a_start_that_makes_rows_ready_is_given_time_and_one_that_repeats_itself_is_not(
    node: FakeNode,
) -> None:
    """L4"""

    def prepared(rows: int) -> str:
        """Return the job's state after a time longer than any start may take.

        A report comes at the end of that time.
        """
        world.age_state(job, 10_000)
        ago = timedelta(seconds=10_000)
        Claim.objects.filter(prepared_at__isnull=False).update(prepared_at=F("prepared_at") - ago)
        node.sync(node.say(order, "starting", {"kind": "prepare", "body": {"rows": rows}}))
        tick()
        return world.state_of(job)

    job = world.placed_job(node)
    order = node.take_up()
    assert [prepared(rows) for rows in (1000, 2000)] == [JobState.STARTING] * 2
    prepared(2000)
    assert job.attempts.get(fence=1).outcome == "timeout"


def test_three_declined_starts_block_the_node_for_a_while(node: FakeNode) -> None:
    """I20"""
    job = world.placed_job(node)
    for _ in range(3):
        node.end(next(iter(node.sync().claims)), "declined", reason="The disk is full.")
        world.age_attempts(3600)  # until the job asks it again
        tick()
    blocked = Node.objects.get()
    assert blocked.state == NodeState.BLOCKED
    assert blocked.until is not None
    assert "disk is full" in blocked.reason
    assert world.state_of(job) == JobState.QUEUED
    assert not Execution.objects.filter(attempt_id__isnull=False).exists()


def test_a_node_that_takes_up_nothing_is_blocked_like_one_that_declines(node: FakeNode) -> None:
    """A node that takes up nothing is blocked like one that declines.

    L4: the node keeps reporting that it is alive, and the job would use up all its tries there.
    """
    job = world.placed_job(node)
    for _ in range(3):
        node.sync()
        world.age_state(job, 100)
        tick()
        world.age_attempts(3600)  # until the job asks it again
        tick()
    attempt = job.attempts.order_by("-fence")[0]
    assert attempt.reason.startswith("assigned for more than 60 s. Not taken up by node")
    blocked = Node.objects.get()
    assert (blocked.state, blocked.block_kind) == (NodeState.BLOCKED, "declines")
    assert f"did not take up {job.pk}" in blocked.reason
    other = world.fake_node()
    tick()
    assert other.take_up().spec is not None
    assert world.state_of(job) == JobState.STARTING


def test_draining_with_move_sends_the_job_elsewhere_with_its_checkpoint(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(2))
    row = Node.objects.get()
    drain_node(node=row, actor=world.admin(), reason="New fans", move_jobs=True, now=database_now())
    tick()
    assert node.sync(node.say(order, "running")).claims[0].stop_for == "drain"
    node.save_checkpoint(order, 2)
    node.end(order, "stopped")
    tick()
    assert Node.objects.get().state == NodeState.DRAINED
    other = world.fake_node()
    assert tick().started == 1
    moved = other.take_up()
    assert moved.spec is not None
    assert moved.spec.resume is not None
    other.end(moved, "succeeded", result())
    assert world.state_of(job) == JobState.SUCCEEDED


def test_a_checkpoint_counts_only_with_all_its_files(node: FakeNode) -> None:
    """I14"""
    job = world.placed_job(node)
    order = node.take_up()
    missing = [{"path": "weights.bin", "sha256": "0" * 64, "bytes": 3}]
    reply = node.run(order, {"kind": "checkpoint", "body": {"step": 1, "stored": "portal", "files": missing}})
    assert reply.claims[0].error == "bad_report"
    assert not Checkpoint.objects.filter(job=job).exists()


def test_a_checkpoint_on_the_node_alone_pins_the_job_to_it(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    big = [{"path": "weights.bin", "sha256": "0" * 64, "bytes": 10**11}]
    node.run(order, {"kind": "checkpoint", "body": {"step": 1, "stored": "node", "files": big}})
    world.silence(node, 1000)
    world.fake_node()
    tick()
    job.refresh_from_db()
    assert (job.state, job.wait_code) == (JobState.QUEUED, "checkpoint-node")
    node.sync()
    node.sync()
    assert tick().started == 1
    assert job.attempts.get(fence=2).claims.get().node_id == node.node_id


def test_one_gpu_cannot_be_held_twice_nor_one_job_tried_twice(node: FakeNode) -> None:
    """I4, I5"""
    job = world.placed_job(node)
    attempt = job.attempts.get()
    held = Allocation.objects.filter(claim__attempt=attempt)[0]
    other = Claim.objects.create(attempt=attempt, node_id=world.fake_node().node_id, rank=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Allocation.objects.create(claim=other, gpu=held.gpu, allocated_at=database_now())
    with pytest.raises(IntegrityError), transaction.atomic():
        Attempt.objects.create(job=job, fence=99, option=attempt.option, created_at=database_now())


def test_a_claim_stopped_before_its_process_began_teaches_nothing(node: FakeNode) -> None:
    """I9"""
    job = world.placed_job(node)
    order = node.take_up()
    cancel_job(job=job, actor=job.owner, now=database_now())
    node.end(order, "stopped", reason="Stopped before it was started.")
    assert world.state_of(job) == JobState.CANCELLED
    assert not Execution.objects.filter(attempt_id__isnull=False).exists()
