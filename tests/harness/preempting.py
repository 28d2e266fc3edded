"""A job that was asked to leave its GPUs: under `las`, or to one of a higher class."""

from __future__ import annotations

from typing import NamedTuple

from portal.accounts.models import User
from scheduler.loop.tick import tick
from scheduler.models import Job
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from trainer.protocol import ClaimOrder

LONG_ENOUGH_S = 100.0  # beyond the least time that a job runs before it is stopped


class Turn(NamedTuple):
    """The victim with its node and order, and the job that takes its GPUs."""

    node: FakeNode
    victim: Job
    order: ClaimOrder
    taker: Job


def running(
    node: FakeNode, owner: User | None = None, priority: int = 0, **params: int
) -> tuple[Job, ClaimOrder]:
    """A job that has run for long enough to be stopped for another, and has much left to do."""
    job = world.placed_job(node, owner=owner, priority=priority, params={"max_steps": 100_000, **params})
    order = node.take_up()
    node.run(order, step(1))
    world.age_starts(LONG_ENOUGH_S)
    return job, order


def preempting(
    slots: int = 1,
    gpus: int = 1,
    *,
    victim_of: User | None = None,
    taker_of: User | None = None,
    victim_class: int = 0,
) -> Turn:
    """A tick stopped the job of one user for that of another."""
    node = world.fake_node(slots=slots)
    victim, order = running(node, victim_of, victim_class, number_gpus=slots)
    taker = world.job(taker_of, params={"number_gpus": gpus, "max_steps": 10_000})
    assert tick().started == 0
    victim.refresh_from_db()
    assert victim.preempting
    return Turn(node, victim, order, taker)
