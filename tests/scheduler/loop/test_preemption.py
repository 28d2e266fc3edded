"""Jobs that are stopped for others: GPUs are kept, given to nobody else, and the stopped job goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from portal.clock import database_now
from scheduler.loop import leadership
from scheduler.loop.pending import settle_pending
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Job, Node, PendingGpu, PendingStart
from scheduler.services.jobs.verbs import cancel_job, pause_job
from scheduler.services.nodes.state import drain_node
from scheduler.services.policy import choose_policy
from scheduler.states import WaitState
from tests.harness import world
from tests.harness.fake_node import step
from tests.harness.invariants import assert_sound
from tests.harness.preempting import LONG_ENOUGH_S, preempting, running

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _least_attained(settings: Any) -> None:
    settings.POLICY = "las"


def kept() -> set[tuple[str, int]]:
    """(job, GPU index) of what is kept."""
    return set(PendingGpu.objects.values_list("start__job_id", "gpu__index"))


def held() -> set[tuple[str, int]]:
    rows = Allocation.objects.filter(released_at__isnull=True)
    return set(rows.values_list("claim__attempt__job_id", "gpu__index"))


def test_a_job_that_goes_first_gets_the_gpu_of_another_once_that_has_left() -> None:
    node, victim, order, taker = preempting()
    assert (world.state_of(victim), victim.stop_for) == ("stopping", "preempt")
    assert kept() == {(taker.pk, 0)}
    assert world.state_of(taker) == "queued"
    assert taker.wait_code == WaitState.PENDING
    assert (tick().started, world.state_of(taker)) == (0, "queued")
    node.save_checkpoint(order, 2)
    node.end(order, "stopped")
    assert world.state_of(victim) == "queued"
    assert tick().started == 1
    assert (world.state_of(taker), taker.wait_code) == ("assigned", "")
    assert (kept(), held()) == (set(), {(taker.pk, 0)})
    assert world.state_of(victim) == "queued"
    assert_sound()


def test_a_stopped_job_goes_on_from_the_checkpoint_that_its_stop_saved() -> None:
    node, victim, order, taker = preempting()
    node.save_checkpoint(order, 7)
    node.end(order, "stopped")
    tick()
    node.end(node.take_up(), "succeeded")
    tick()
    resumed = node.take_up()
    assert resumed.spec is not None
    assert resumed.spec.job == victim.pk
    assert resumed.spec.resume is not None
    assert resumed.spec.resume.step == 7
    assert world.state_of(taker) == "succeeded"
    victim.refresh_from_db()
    assert victim.infrastructure_used == 0
    assert_sound()


def test_the_stop_names_its_cause_and_tells_nobody_which_job_it_was() -> None:
    _, victim, _, taker = preempting()
    assert Attempt.objects.get(job=victim).stopped_for == taker
    answer = victim.events.get(new="stopping")
    assert "goes on from its checkpoint" in answer.reason
    assert taker.pk not in f"{answer.reason} {answer.data}"


def test_gpus_of_a_pending_start_are_given_to_nobody_else() -> None:
    """Two jobs of one GPU each leave a node for one of two; a small job comes between."""
    node = world.fake_node(slots=2)
    (first, one), (second, other) = running(node, number_gpus=1), running(node, number_gpus=1)
    world.age_starts(LONG_ENOUGH_S)
    gang = world.job(params={"number_gpus": 2})
    tick()
    assert kept() == {(gang.pk, 0), (gang.pk, 1)}
    node.end(one, "stopped")
    small = world.job()
    assert tick().started == 0
    assert {world.state_of(job) for job in (first, small, gang)} == {"queued"}
    node.end(other, "stopped")
    assert tick().started == 1
    assert held() == {(gang.pk, 0), (gang.pk, 1)}
    assert world.state_of(second) == "queued"
    assert_sound()


@pytest.mark.parametrize("verb", [cancel_job, pause_job])
def test_a_job_that_left_the_queue_leaves_what_was_kept_to_the_next(verb: Any) -> None:
    node, _, order, taker = preempting()
    verb(job=taker, actor=taker.owner, now=database_now())
    node.end(order, "stopped")
    nxt = world.job()
    assert tick().started == 1
    assert (kept(), held()) == (set(), {(nxt.pk, 0)})
    assert_sound()


def test_a_victim_that_ends_by_itself_counts_as_stopped() -> None:
    node, victim, order, taker = preempting()
    node.end(order, "succeeded")
    assert tick().started == 1
    assert (world.state_of(victim), world.state_of(taker)) == ("succeeded", "assigned")


def test_a_pending_start_lapses_when_its_time_is_over() -> None:
    _, victim, _, taker = preempting()
    PendingStart.objects.update(expires_at=F("expires_at") - timedelta(hours=1))
    tick()
    assert kept() == set()
    assert world.state_of(taker) == "queued"
    assert taker.wait_code == WaitState.BUSY
    assert taker.events.get(type="job.reservation_over").reason == "Its GPUs did not become free in time."
    assert world.state_of(victim) == "stopping"


def test_a_victim_that_does_not_stop_blocks_its_node_and_the_start_lapses() -> None:
    node, victim, _, taker = preempting()
    world.age_state(victim, 10_000)
    tick()
    assert kept() == set()
    assert Node.objects.get(pk=node.node_id).state == "blocked"
    assert {world.state_of(victim), world.state_of(taker)} == {"queued"}
    victim.refresh_from_db()
    assert victim.infrastructure_used == 0
    assert_sound()


def test_a_node_that_drains_keeps_nothing_for_anybody() -> None:
    node, _, _, taker = preempting()
    row, admin = Node.objects.get(pk=node.node_id), world.admin()
    drain_node(node=row, actor=admin, reason="r", move_jobs=False, now=database_now())
    tick()
    assert kept() == set()
    assert world.state_of(taker) == "queued"


def test_a_job_that_ends_sooner_than_a_stop_would_pay_is_left_alone() -> None:
    node = world.fake_node(slots=1)
    victim, order = running(node, max_steps=2)
    node.run(order, step(2))  # it has only to save
    world.job()
    tick()
    assert (world.state_of(victim), kept()) == ("running", set())


def test_nobody_is_stopped_before_a_minute() -> None:
    node = world.fake_node(slots=1)
    victim = world.placed_job(node, params={"max_steps": 100_000})
    node.run(node.take_up(), step(1))
    world.job()
    tick()
    assert (world.state_of(victim), kept()) == ("running", set())


def test_two_jobs_do_not_throw_each_other_out_in_turns() -> None:
    node, victim, order, taker = preempting()
    node.end(order, "stopped")
    tick()
    mine = node.take_up()
    node.run(mine, step(1))
    world.age_starts(10_000, of=taker)
    tick()
    assert (world.state_of(taker), world.state_of(victim)) == ("running", "queued")
    world.age_attempts(60)  # its cool-down is over
    tick()
    assert world.state_of(taker) == "stopping"


def test_a_job_that_was_stopped_as_often_as_allowed_is_left_alone() -> None:
    choose_policy(name="las", parameters={"limit": 1}, actor=world.admin(), reason="r", now=database_now())
    node, victim, order, taker = preempting()
    node.end(order, "stopped")
    tick()
    node.end(node.take_up(), "succeeded")
    tick()
    again = node.take_up()
    node.run(again, step(1))
    world.age_starts(LONG_ENOUGH_S)
    world.job(params={"max_steps": 10_000})
    tick()
    assert (world.state_of(taker), world.state_of(victim)) == ("succeeded", "running")


def test_the_loss_of_a_node_is_no_preemption() -> None:
    """Its job may stop another at once."""
    lost, node = world.fake_node(slots=1), world.fake_node(slots=1)
    running(lost)
    victim, _ = running(node)
    unlucky = Job.objects.exclude(pk=victim.pk).get()
    world.age_starts(0)
    Attempt.objects.filter(job=victim).update(created_at=F("created_at") - timedelta(hours=2))
    world.silence(lost, 1000)
    tick()
    assert world.state_of(unlucky) == "queued"
    assert Attempt.objects.get(job=victim).stopped_for == unlucky
    assert PendingStart.objects.get().job == unlucky


def test_another_policy_keeps_nothing_of_the_one_before() -> None:
    node, victim, order, taker = preempting()
    choose_policy(name="fifo", actor=world.admin(), reason="r", now=database_now())
    tick()
    assert kept() == set()
    node.end(order, "stopped")
    assert tick().started == 1
    assert (world.state_of(victim), world.state_of(taker)) == ("assigned", "queued")


def test_a_start_begins_after_the_gpus_were_left_although_the_tick_began_before() -> None:
    """I5: the victim leaves while the tick looks at leases."""
    node, _, order, taker = preempting()
    began = database_now()
    epoch = leadership.acquire()
    assert epoch is not None
    node.end(order, "stopped")
    assert settle_pending(epoch, began) == 1
    assert world.state_of(taker) == "assigned"
    assert_sound()


def test_a_pending_start_survives_its_scheduler() -> None:
    """All is kept in rows, so another worker goes on with it."""
    node, _, order, taker = preempting()
    world.free_the_epoch()
    node.end(order, "stopped")
    assert tick().started == 1
    assert world.state_of(taker) == "assigned"


def test_starts_that_still_wait_cost_a_tick_no_query_each_and_hold_up_none(settings: Any) -> None:
    """Of two pending starts the later one's GPU is free first, and a tick may change one thing alone."""

    def queries() -> int:
        epoch = leadership.acquire()
        assert epoch is not None
        with CaptureQueriesContext(connection) as captured:
            settle_pending(epoch, database_now())
        leadership.release(epoch)
        return len(captured)

    settings.CHANGES_PER_TICK = 1
    node = world.fake_node(slots=2)
    orders = [running(node, number_gpus=1)[1] for _ in range(2)]
    world.age_starts(LONG_ENOUGH_S)
    takers = [world.job(params={"number_gpus": 1, "max_steps": 10_000}) for _ in range(2)]
    tick()
    assert len(kept()) == 1
    one = queries()
    tick()
    assert {job for job, _ in kept()} == {job.pk for job in takers}
    assert queries() == one
    later = PendingStart.objects.order_by("made_at", "pk")[1]
    held_by = Allocation.objects.get(gpu__in=later.gpus.values("gpu"), released_at__isnull=True)
    node.end(next(order for order in orders if order.claim == str(held_by.claim_id)), "stopped")
    assert tick().started == 1
    assert world.state_of(later.job) == "assigned"
    assert_sound()
