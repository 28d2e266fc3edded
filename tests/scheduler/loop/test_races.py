"""Two calls at once on real connections with real commits.

One of the two orders results, and nothing else (F15, F16).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from portal import clock
from portal.clock import database_now
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Job, Node
from scheduler.services.jobs.verbs import cancel_job, pause_job
from scheduler.services.nodes.state import drain_node
from scheduler.services.policy import choose_policy
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step
from tests.harness.invariants import assert_sound
from tests.harness.sampling import mostly_on_demand
from tests.harness.threads import at_once

# SQLite lets one transaction write at a time.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def pairs(racers: Sequence[str], *always: str) -> list[Any]:
    """Any two; those without one that is always raced are raced on demand."""
    every = list(itertools.combinations(racers, 2))
    return mostly_on_demand(every, [pair for pair in every if {*always} & {*pair}])


RACERS = ("cancel", "pause", "finish", "progress", "expire", "drain", "tick")


@pytest.mark.parametrize("pair", pairs(RACERS, "finish", "tick"), ids="-".join)
def test_any_two_at_once_end_in_one_of_the_two_orders(pair: tuple[str, str]) -> None:
    node = world.fake_node()
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1))
    twin = FakeNode(type(node.client)(), node.node_id, node.token, node.boot_id, dict(node.orders))
    finished = node.say(order, "ended", result(), outcome="succeeded")
    progress = node.say(order, "running", {"kind": "log", "body": {"text": "x"}})
    progress["reports"][0]["seq"] = finished["reports"][0]["seq"]
    admin, row = world.admin(), Node.objects.get()
    if "expire" in pair:
        world.silence(node, 3600)
    calls: dict[str, Callable[[], Any]] = {
        "cancel": lambda: cancel_job(job=job, actor=job.owner, now=database_now()),
        "pause": lambda: pause_job(job=job, actor=job.owner, now=database_now()),
        "finish": lambda: node.sync(finished),
        "progress": lambda: twin.sync(progress),
        "expire": tick,
        "drain": lambda: drain_node(node=row, actor=admin, reason="r", move_jobs=True, now=database_now()),
        "tick": tick,
    }
    at_once(*(calls[name] for name in pair))
    job.refresh_from_db()
    assert_sound()
    if pair == ("cancel", "finish"):
        late = job.events.filter(type="job.cancel_too_late").count()
        assert (job.state, late) in ((JobState.CANCELLED, 0), (JobState.SUCCEEDED, 1))


WAITING_RACERS = ("tick", "cancel", "pause", "drain", "refresh", "silence", "choose")


@pytest.mark.parametrize("pair", pairs(WAITING_RACERS, "tick"), ids="-".join)
def test_any_two_at_once_about_a_waiting_job_end_in_one_of_the_two_orders(pair: tuple[str, str]) -> None:
    world.fake_node()
    job, admin, row = world.job(), world.admin(), Node.objects.get()
    Job.objects.update(options_for="other nodes")
    calls: dict[str, Callable[[], Any]] = {
        "tick": tick,
        "cancel": lambda: cancel_job(job=job, actor=job.owner, now=database_now()),
        "pause": lambda: pause_job(job=job, actor=job.owner, now=database_now()),
        "drain": lambda: drain_node(node=row, actor=admin, reason="r", move_jobs=False, now=database_now()),
        "refresh": refresh_options,
        "silence": lambda: Node.objects.update(last_seen_at=database_now() - timedelta(hours=1)),
        "choose": lambda: choose_policy(name="sjf", actor=admin, reason="r", now=database_now()),
    }
    at_once(*(calls[name] for name in pair))
    job.refresh_from_db()
    assert_sound()
    if "drain" in pair:
        assert Node.objects.get().state in (NodeState.DRAINING, NodeState.DRAINED)
    world.free_the_epoch()
    tick()
    job.refresh_from_db()
    assert_sound()


def test_two_ends_of_one_claim_at_once_are_one_end() -> None:
    """I11, F15: a repeated message that says something else"""
    node = world.fake_node()
    job = world.placed_job(node)
    order = node.take_up()
    twin = FakeNode(type(node.client)(), node.node_id, node.token, node.boot_id, dict(node.orders))
    good = node.say(order, "ended", result(), outcome="succeeded")
    bad = {**good, "outcome": "killed", "reason": "by a signal"}
    at_once(lambda: node.sync(good), lambda: twin.sync(bad))
    job.refresh_from_db()
    assert_sound()
    assert (job.state, job.attempts.get().outcome) in (
        (JobState.SUCCEEDED, "succeeded"),
        (JobState.QUEUED, "killed"),
    )


def test_many_schedulers_at_once_place_each_job_once() -> None:
    """F17"""
    world.fake_node(slots=3)
    owner = world.user()
    file = world.data_file(owner)
    for _ in range(5):
        world.job(owner, training_file=file, params={"number_gpus": 1})
    for _ in range(3):
        at_once(*[tick] * 4)
    assert Attempt.objects.count() == 3
    assert Allocation.objects.filter(released_at__isnull=True).count() == 3
    assert_sound()


def test_two_control_workers_lose_a_dead_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """L2: two control workers lose a dead node once.

    One worker reads the clock, and before it does anything else the other one completes a tick.
    """
    world.fake_node()
    dead = world.fake_node()
    read, readings = clock.read, itertools.count()

    def the_other_one_is_quicker() -> datetime:
        now = read()
        if next(readings) == 0:
            at_once(tick)
            world.silence(dead, 1000)
        return now

    monkeypatch.setattr(clock, "read", the_other_one_is_quicker)
    tick()
    assert Node.objects.get(pk=dead.node_id).state == NodeState.LOST
