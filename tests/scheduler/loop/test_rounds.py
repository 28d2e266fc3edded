"""Policies that decide in rounds: when they do, and what a slow one holds up."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from time import sleep
from typing import Any

import pytest

from portal.clock import database_now
from scheduler.core.cycle.rounds import next_round
from scheduler.core.policies import FIFO
from scheduler.core.types import ClusterState, Description, Plan
from scheduler.loop import deciding
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Epoch, Job
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.policy import choose_policy
from scheduler.states import WaitState
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.harness.invariants import assert_sound

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


def choose(name: str, **parameters: Any) -> None:
    choose_policy(name=name, parameters=parameters, actor=world.admin(), reason="test", now=database_now())


def a_round_later() -> int:
    Epoch.objects.update(round_at=None)
    return tick().started


def held(job: Job) -> int:
    return Allocation.objects.filter(released_at__isnull=True, claim__attempt__job=job).count()


def test_a_round_begins_once_the_last_one_is_over() -> None:
    assert next_round(None, 60.0, 5.0) == 5.0
    assert next_round(0.0, 60.0, 5.0) == 60.0
    assert next_round(0.0, 60.0, 75.0) == 75.0
    assert next_round(0.0, None, 5.0) == next_round(0.0, 0.0, 5.0) == 5.0
    assert next_round(1000.0, 60.0, 5.0) == 5.0  # the clock was set back


@pytest.mark.parametrize("name", ["sia", "gavel"])
def test_a_job_that_comes_between_two_rounds_waits_for_the_next(name: str) -> None:
    """The first one finds no round under way; another choice begins one at once."""
    choose(name)
    world.fake_node(slots=2)
    assert tick().started == 0
    world.job(params={"number_gpus": 1})
    assert tick().started == 1
    memory = Epoch.objects.get().memory[name]
    later = world.job(params={"number_gpus": 1})
    assert (tick().started, tick().waiting) == (0, 1)
    later.refresh_from_db()
    assert (later.wait_code, Epoch.objects.get().memory[name]) == (WaitState.ROUND, memory)
    choose(name, min_run_s=30.0)
    assert (Epoch.objects.get().memory, tick().started) == ({}, 1)


def test_sia_resizes_a_running_job_and_back_again() -> None:
    """From one slot to two once a job has ended, and back for one that comes."""
    choose("sia", idle=20.0)
    node = world.fake_node(slots=2)
    first, job = (world.job(params={"max_steps": 100_000, **more}) for more in ({"number_gpus": 1}, {}))
    assert (tick().started, held(job)) == (2, 1)
    cancel_job(job=first, actor=first.owner, now=database_now())
    of_job = [order for order in orders(node) if order.spec and order.spec.job == job.pk]
    node.end(next(order for order in orders(node) if order not in of_job), "stopped")
    assert resized(node, job, of_job[0]) == 2
    another = world.job(params={"max_steps": 100_000, "number_gpus": 1})
    assert resized(node, job, orders(node)[0]) == 1
    assert held(another) == 1
    stops = Attempt.objects.filter(job=job, outcome="stopped")
    assert [attempt.stopped_for_id for attempt in stops] == [job.pk, job.pk]
    reported = " ".join(job.events.values_list("reason", flat=True))
    assert "2 CPU slots instead of 1 CPU slot;" in reported
    assert "1 CPU slot instead of 2 CPU slots;" in reported
    batches = {attempt.promised.config.effective_batch_size for attempt in Attempt.objects.filter(job=job)}
    assert len(batches) == 1
    assert_sound()


def orders(node: FakeNode) -> list[Any]:
    return [node.orders[claim.claim] for claim in node.sync().claims if claim.claim in node.orders]


def resized(node: FakeNode, job: Job, order: Any) -> int:
    """The slots of the job once a round has resized it and its node has confirmed the stop."""
    node.run(order, step(1))
    world.age_starts(1000)
    a_round_later()
    assert world.state_of(job) == "stopping"
    node.save_checkpoint(order, 7)
    node.end(order, "stopped")
    job.refresh_from_db()
    assert (job.state, job.wait_code) == ("queued", WaitState.PENDING)  # before any tick
    tick()
    attempt = Attempt.objects.get(job=job, ended_at__isnull=True)
    assert attempt.resume_step == 7
    return held(job)


@dataclass(frozen=True)
class _Stuck:
    """Decides once it is let go."""

    let_go: Event
    name: str = "fifo"
    description: Description = FIFO.description
    preempts: bool = False
    rules: None = None
    round_s: float | None = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        self.let_go.wait(30)
        return Plan(())


def test_a_decision_that_takes_too_long_holds_nothing_up(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Leases are looked at meanwhile; it is given up, and no other one begins while it lasts."""
    settings.DECIDE_FOR_S = 0.1
    monkeypatch.setattr(deciding, "LOOK_EVERY_S", 0.01)
    looks: list[int] = []
    stuck, state = _Stuck(Event()), ClusterState(jobs=(), nodes=())
    try:
        assert deciding.decide(stuck, state, 0.0, lambda: looks.append(1)) is None
        assert looks
        assert deciding.decide(FIFO, state, 0.0, lambda: None) is None
        reported = [record.message for record in caplog.records]
        assert [message.startswith(("decision given up", "no decision")) for message in reported] == [
            True,
            True,
        ]
    finally:
        stuck.let_go.set()
    for _ in range(3000):
        if plan := deciding.decide(FIFO, state, 0.0, lambda: None):
            break
        sleep(0.01)  # the one before is still being made
    assert plan == Plan(())
