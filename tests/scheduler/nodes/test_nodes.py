"""A node's state through all events.

An administrator's wish for it outlasts them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.clock import database_now
from portal.events.models import Event
from scheduler.errors import Conflict
from scheduler.loop import leadership, leases
from scheduler.loop.tick import tick
from scheduler.models import Epoch, Node
from scheduler.services.jobs.verbs import cancel_job, preempt_job
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.states import JobState, NodeState, StopFor
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts, result, step

pytestmark = pytest.mark.django_db


def row() -> Node:
    return Node.objects.get()


def drain(*, move_jobs: bool = False) -> None:
    drain_node(node=row(), actor=world.admin(), reason="New fans", move_jobs=move_jobs, now=database_now())


def resume() -> None:
    resume_node(node=row(), actor=world.admin(), reason="Fans are in", now=database_now())


def lose(node: FakeNode) -> None:
    world.silence(node, 1000)
    tick()
    assert row().state == NodeState.LOST


def leave_a_stop_unconfirmed(node: FakeNode) -> None:
    job = world.placed_job(node)
    node.run(node.take_up(), step(1))
    cancel_job(job=job, actor=job.owner, now=database_now())
    world.age_state(job, 1000)
    tick()


def decline_three_starts(node: FakeNode) -> None:
    world.job()
    for _ in range(3):
        tick()
        node.end(next(iter(node.sync().claims)), "declined", reason="The disk is full.")
        world.age_attempts(3600)  # until the job asks it again


def test_a_drained_machine_that_is_switched_off_stays_drained_when_it_is_back(node: FakeNode) -> None:
    drain()
    tick()
    assert row().state == NodeState.DRAINED
    lose(node)
    node.sync()
    tick()
    world.job()
    assert tick().started == 0
    assert (row().state, row().reason) == (NodeState.DRAINED, "New fans")
    assert row().state_by is not None
    resume()
    assert tick().started == 1


def test_a_drain_outlasts_a_stop_that_was_not_confirmed(node: FakeNode) -> None:
    job = world.placed_job(node)
    node.run(node.take_up(), step(1))
    drain(move_jobs=True)
    tick()
    world.age_state(job, 1000)
    tick()
    assert row().state == NodeState.BLOCKED
    node.sync()
    assert (row().state, row().move_jobs) == (NodeState.DRAINING, True)
    assert tick().started == 0
    assert row().state == NodeState.DRAINED


def test_a_drain_outlasts_declined_starts(node: FakeNode) -> None:
    decline_three_starts(node)
    drain()
    over = database_now() - timedelta(seconds=1)
    Node.objects.update(state=NodeState.BLOCKED, block_kind="declines", until=over)
    tick()
    assert row().state == NodeState.DRAINED


def test_a_lost_node_can_be_drained_and_that_taken_back(node: FakeNode) -> None:
    lose(node)
    drain()
    assert row().state == NodeState.LOST
    drain()
    assert row().events.filter(type="node.draining").count() == 1
    drain(move_jobs=True)
    assert row().move_jobs, "its jobs shall now leave"
    resume()
    node.sync()
    assert row().state == NodeState.READY
    lose(node)
    drain()
    node.sync()
    assert row().state == NodeState.DRAINING


@pytest.mark.parametrize("then", ["resume", "drain and resume"])
def test_nobody_gives_work_to_a_node_that_may_still_run_what_was_given_up(node: FakeNode, then: str) -> None:
    """I5"""
    leave_a_stop_unconfirmed(node)
    if "drain" in then:
        drain()
        tick()
        resume()
    else:
        with pytest.raises(Conflict, match="once it reports nothing running"):
            resume()
    assert row().state == NodeState.BLOCKED
    node.sync()
    assert row().state == NodeState.READY


def block_for_gpus(node: FakeNode) -> None:
    node.sync(facts=facts(slots=1))


@pytest.mark.parametrize("then", [lose, leave_a_stop_unconfirmed, decline_three_starts])
def test_other_gpus_outlast_what_heals(node: FakeNode, then: Any) -> None:
    job = world.placed_job(node) if then is not lose else None
    block_for_gpus(node)
    kind, reason = row().block_kind, row().reason
    if then is lose:
        lose(node)
    elif then is leave_a_stop_unconfirmed and job:
        cancel_job(job=job, actor=job.owner, now=database_now())
        world.age_state(job, 1000)
        tick()
    else:
        Node.objects.update(declines=[database_now().timestamp()] * 2)
        node.end(next(iter(node.orders.values())), "declined", reason="The disk is full.")
    node.sync()
    tick()
    assert (row().state, row().block_kind, row().reason) == (NodeState.BLOCKED, kind, reason)
    assert row().until is None
    with pytest.raises(Conflict, match="without GPU 1"):
        resume()
    node.sync(facts=facts())
    assert row().state == NodeState.READY


def test_a_node_that_comes_and_goes_gets_no_work_for_a_while(node: FakeNode) -> None:
    """F13: jobs on it would lose one try after the other."""
    for _ in range(2):
        lose(node)
        node.sync()
        assert row().state == NodeState.READY
    lose(node)
    node.sync()
    world.job()
    assert tick().started == 0
    assert (row().state, row().block_kind) == (NodeState.BLOCKED, "flapping")
    assert row().until is not None
    Node.objects.update(until=database_now() - timedelta(seconds=1))
    assert tick().started == 1


def test_an_administrator_trusts_a_node_that_came_and_went(node: FakeNode) -> None:
    for _ in range(3):
        lose(node)
        node.sync()
    resume()
    assert row().state == NodeState.READY
    lose(node)
    node.sync()
    assert row().state == NodeState.READY


def test_losses_of_long_ago_do_not_count(node: FakeNode) -> None:
    for _ in range(3):
        lose(node)
        Event.objects.filter(type="node.lost").update(at=database_now() - timedelta(hours=2))
        node.sync()
    assert row().state == NodeState.READY


def test_a_heartbeat_that_comes_while_leases_are_looked_at_counts(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I7, F13: the list of silent nodes is old by the time that each is looked at."""
    job, other, hold = world.placed_job(node), world.fake_node(), leadership.hold
    world.fake_node()
    for silent in (node, other):
        world.silence(silent, 1000)
    epoch = leadership.acquire()
    assert epoch is not None

    def heartbeat_meanwhile(of: Epoch) -> None:
        node.sync()
        hold(of)

    monkeypatch.setattr(leadership, "hold", heartbeat_meanwhile)
    leases.expire_leases(epoch, database_now())
    assert world.state_of(job) == JobState.ASSIGNED
    assert Node.objects.get(pk=node.node_id).state == NodeState.READY
    assert Node.objects.get(pk=other.node_id).state == NodeState.LOST


def test_taking_gpus_back_from_a_job_that_just_ended_changes_nothing(node: FakeNode) -> None:
    """F16: a drain that moves jobs against the end of one"""
    job = world.placed_job(node)
    node.end(node.take_up(), "succeeded", result())
    preempt_job(job=job, stop_for=StopFor.DRAIN, now=database_now(), reason="x", grace_s=None)
    assert world.state_of(job) == JobState.SUCCEEDED
