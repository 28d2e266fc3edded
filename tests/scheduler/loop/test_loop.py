"""The loop: single ticks, replaced schedulers, leases, reasons, stale options.

Leases are tested after a gap.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge.models import Execution
from portal.clock import database_now
from scheduler.core.types import Plan, Start, Wait
from scheduler.errors import SchedulerReplaced
from scheduler.loop import leadership, leases, snapshot
from scheduler.loop.apply import apply
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Claim, Epoch, Job, Node
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.nodes.state import drain_node
from scheduler.states import JobState, NodeState, WaitState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step

pytestmark = [pytest.mark.django_db, pytest.mark.two_databases]


def test_a_tick_does_nothing_while_another_one_runs() -> None:
    world.fake_node()
    world.job()
    assert leadership.acquire() is not None
    assert not tick().ran
    world.free_the_epoch()
    assert tick().started == 1


def test_a_scheduler_that_was_replaced_changes_nothing() -> None:
    """I19, F17"""
    node, job = world.fake_node(), world.job()
    old = leadership.acquire()
    assert old is not None
    state = snapshot.take_snapshot({}, database_now())
    option = state.jobs[0].options[0]
    plan = Plan((Start(job.pk, option, ((node.node_id, 0),)),))
    Epoch.objects.update(since=database_now() - timedelta(hours=1))  # paused for an hour
    assert tick().started == 1
    with pytest.raises(SchedulerReplaced):
        apply(old, state, plan, "fifo", database_now())
    assert Attempt.objects.count() == 1
    memory = Epoch.objects.get().memory
    old.memory = {"mine": 1}
    leadership.release(old)
    assert Epoch.objects.get().memory == memory


def test_a_dead_scheduler_is_replaced_after_a_while() -> None:
    """F2"""
    world.fake_node()
    world.job()
    leadership.acquire()
    Epoch.objects.update(since=database_now() - timedelta(seconds=11))
    assert tick().started == 1


def test_a_stale_decision_is_dropped_and_decided_anew() -> None:
    """A cancel between snapshot and apply wins."""
    node, job = world.fake_node(), world.job()
    state = snapshot.take_snapshot({}, database_now())
    Job.objects.filter(pk=job.pk).update(state=JobState.PAUSED)
    epoch = leadership.acquire()
    assert epoch is not None
    plan = Plan((Start(job.pk, state.jobs[0].options[0], ((node.node_id, 0),)),))
    assert apply(epoch, state, plan, "fifo", database_now()).started == 0
    assert not Attempt.objects.exists()


def test_a_node_that_began_to_drain_after_the_snapshot_gets_nothing() -> None:
    """I5"""
    node, job = world.fake_node(), world.job()
    state = snapshot.take_snapshot({}, database_now())
    row = Node.objects.get()
    drain_node(node=row, actor=world.admin(), reason="New fans", move_jobs=False, now=database_now())
    epoch = leadership.acquire()
    assert epoch is not None
    plan = Plan((Start(job.pk, state.jobs[0].options[0], ((node.node_id, 0),)),))
    assert apply(epoch, state, plan, "fifo", database_now()).started == 0
    assert not Attempt.objects.exists()


def test_a_start_on_a_gpu_that_another_job_holds_leaves_nothing_behind() -> None:
    """I4: not even the attempt that was made before the GPU was looked at."""
    node = world.fake_node(slots=1)
    world.placed_job(node)
    job, epoch = world.job(), leadership.acquire()
    state = snapshot.take_snapshot({}, database_now())
    assert epoch is not None
    plan = Plan((Start(job.pk, state.jobs[1].options[0], ((node.node_id, 0),)),))
    assert apply(epoch, state, plan, "fifo", database_now()).started == 0
    assert not Attempt.objects.filter(job=job).exists()


def test_a_scheduler_that_was_replaced_loses_no_node(node: FakeNode) -> None:
    """I19"""
    tick()
    world.served_for_long()
    old = leadership.acquire()
    assert old is not None
    Epoch.objects.update(since=database_now() - timedelta(hours=1))
    assert tick().ran
    world.silence(node, 600)
    with pytest.raises(SchedulerReplaced):
        leases.expire_leases(old, database_now())
    assert Node.objects.get().state == NodeState.READY


def test_nobody_is_lost_while_nobody_gets_through(node: FakeNode) -> None:
    """F12: all nodes are cut off for ten minutes, and the portal's loop goes on."""
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    others = [world.fake_node(), world.fake_node()]
    for silent in (node, *others):
        world.silence(silent, 600)
    tick()
    assert not Node.objects.filter(state=NodeState.LOST).exists()
    others[0].sync()
    tick()
    assert not Node.objects.filter(state=NodeState.LOST).exists(), "each has a full lease to come back"
    assert node.run(order, step(2)).claims[0].error == ""
    assert world.state_of(job) == JobState.RUNNING
    world.silence(others[1], 100)
    tick()
    assert Node.objects.get(pk=others[1].node_id).state == NodeState.LOST


def test_nodes_that_have_stopped_by_themselves_are_lost_all_together(node: FakeNode) -> None:
    job = world.placed_job(node)
    for silent in (node, world.fake_node()):
        world.silence(silent, 1000)
    tick()
    assert set(Node.objects.values_list("state", flat=True)) == {NodeState.LOST}
    assert world.state_of(job) == JobState.QUEUED


def test_a_silent_node_gets_no_new_starts_before_it_is_lost() -> None:
    node = world.fake_node()
    world.job()
    world.silence(node, 70)
    assert tick().started == 0
    assert Node.objects.get().state == NodeState.READY
    job = Job.objects.get()
    assert job.wait_code == "no-node"


def test_a_job_names_the_nodes_that_it_was_promised_and_that_are_away() -> None:
    fast = world.fake_node(name="fast", slots=1, model="L4", memory_bytes=24 << 30)
    world.fake_node(name="other", slots=1)
    job = world.job(params={"gpu_model": "L4"})
    world.silence(fast, 1000)
    tick()
    refresh_options()
    tick()
    job.refresh_from_db()
    assert (job.wait_code, job.options) == ("no-node", [])
    assert job.wait_text == (
        "Needs 1 L4 GPU, and fast is lost. It starts when that is back, or a suitable node joins."
    )


def test_a_waiting_job_says_why_and_starts_when_it_can() -> None:
    job = world.job()
    tick()
    job.refresh_from_db()
    assert (job.wait_code, job.options) == ("no-option", [])
    node = world.fake_node(slots=1)
    assert tick().started == 0
    refresh_options()
    assert tick().started == 1
    second = world.job()
    tick()
    second.refresh_from_db()
    assert second.wait_code == "busy"
    assert "1 CPU slot; 0 are free" in second.wait_text
    node.end(node.take_up(), "error", reason="x")
    tick()
    second.refresh_from_db()
    assert (second.state, second.wait_text) == (JobState.ASSIGNED, "")


def test_options_are_refreshed_only_when_nodes_or_predictor_change() -> None:
    world.fake_node()
    world.job()
    assert refresh_options() == 0
    world.fake_node(slots=3)
    assert refresh_options() == 1
    assert refresh_options() == 0


def test_a_draining_node_without_jobs_is_drained_and_gets_nothing() -> None:
    world.fake_node()
    row = Node.objects.get()
    drain_node(node=row, actor=world.admin(), reason="New fans", move_jobs=False, now=database_now())
    world.job()
    assert tick().started == 0
    assert Node.objects.get().state == NodeState.DRAINED


def test_a_snapshot_takes_the_same_number_of_queries_for_any_number_of_jobs_and_nodes() -> None:
    owner = world.user()
    file = world.data_file(owner)
    counts = []
    for _ in range(2):
        world.fake_node()
        for _ in range(5):
            world.job(owner, training_file=file)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            snapshot.take_snapshot({}, database_now())
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_row_that_cannot_be_handled_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    node = world.fake_node(slots=1)
    world.placed_job(node)
    broken = Attempt.objects.get()
    Attempt.objects.update(measured={"tokens_per_s": "fast"})
    other = world.fake_node(slots=1)
    second = world.placed_job(other)
    for silent in (node, other):
        world.silence(silent, 1000)
    Claim.objects.update(started=True)
    assert not tick().started
    assert world.state_of(second) == JobState.QUEUED
    broken.refresh_from_db()
    assert broken.ended_at is None
    assert "a row was left as it is" in caplog.text


def test_leases_and_deadlines_hold_after_the_clock_was_set_back(node: FakeNode) -> None:
    """F14"""
    job = world.placed_job(node)
    ahead = database_now() + timedelta(hours=1)
    Node.objects.update(last_seen_at=ahead)
    Job.objects.update(state_since=ahead)
    Attempt.objects.update(created_at=ahead)
    Epoch.objects.update(last_tick_at=ahead, since=ahead, busy=True)  # and the scheduler died just before
    assert tick().ran
    assert Node.objects.get().last_seen_at < ahead
    job.refresh_from_db()
    assert job.state_since < ahead
    node.end(node.take_up(), "succeeded", result())
    assert Execution.objects.get(attempt_id=job.attempts.get().pk).runtime_s is None
    world.silence(node, 100)
    tick()
    assert Node.objects.get().state == NodeState.LOST


def test_a_job_that_is_cancelled_while_its_reason_is_written_keeps_none(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.job()
    epoch = leadership.acquire()
    assert epoch is not None
    written = Job.objects.none().__class__.bulk_update

    def cancelled_meanwhile(*args: Any, **kwargs: Any) -> int:
        cancel_job(job=job, actor=job.owner, now=database_now())
        return written(*args, **kwargs)

    monkeypatch.setattr(Job.objects.none().__class__, "bulk_update", cancelled_meanwhile)
    state = snapshot.take_snapshot({}, database_now())
    apply(epoch, state, Plan((Wait(job.pk, WaitState.BUSY, "Others go first."),)), "fifo", database_now())
    job.refresh_from_db()
    assert (job.state, job.wait_text) == (JobState.CANCELLED, "")


def test_a_clock_put_right_by_milliseconds_renews_no_lease(node: FakeNode) -> None:
    tick()
    world.silence(node, 100)
    Epoch.objects.update(last_tick_at=database_now() + timedelta(seconds=1))
    tick()
    assert Node.objects.get().state == NodeState.LOST
