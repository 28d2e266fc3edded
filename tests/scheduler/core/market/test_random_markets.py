"""No decider beats the optimum, and with the guard none is late that need not be."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from scheduler.core.market.optimum import optimum
from scheduler.core.market.pool import DECIDERS, ON_DEMAND, POOL
from scheduler.core.market.replay import live
from scheduler.core.market.types import DeadlineJob, Progress, SlotOffer
from scheduler.core.market.value import can_end_in_time, late_end, slot_cost, value_at, work_in
from tests.scheduler.core.market.examples import random_job, random_offers, true


def best_of_all_sizes(job: DeadlineJob, offers: list[SlotOffer]) -> float:
    """Every way to choose sizes, without a word of the dynamic program."""

    def best(slot: int, done: float, size: int) -> float:
        if slot > job.slots:
            late = late_end(job, done, size)
            return late.value - late.cost
        found = []
        for chosen in job.sizes:
            cost, after = slot_cost(job, chosen, offers[slot - 1]), done + work_in(job, chosen, size)
            ends = after >= job.work - 1e-9
            found.append((value_at(job, slot) if ends else best(slot + 1, after, chosen)) - cost)
        return max(found)

    return max(0.0, best(1, 0.0, 0))


def test_the_optimum_is_the_best_of_all_ways() -> None:
    rng = random.Random(18)
    for _ in range(25):
        job = replace(random_job(rng), slots=rng.randint(1, 4))
        offers = random_offers(rng, job.slots, 4)
        assert optimum(job, offers) == pytest.approx(best_of_all_sizes(job, offers))


@pytest.mark.slow
def test_no_decider_beats_the_optimum() -> None:
    rng = random.Random(300)
    for _ in range(300):
        job = random_job(rng)
        offers = random_offers(rng, job.slots, 4)
        usual = SlotOffer(0.6, 2.0)
        best = optimum(job, offers)
        for decider in DECIDERS.values():
            assert live(job, decider, offers, true(offers), usual).utility <= best + 1e-9


def test_whoever_can_end_in_time_does() -> None:
    rng, feasible = random.Random(2000), 0
    for _ in range(2000):
        job = random_job(rng)
        offers = random_offers(rng, job.slots, 4)
        if not can_end_in_time(job, Progress(1, 0.0, 0)):
            continue
        feasible += 1
        name = rng.choice([*POOL])
        assert live(job, POOL[name], offers, true(random_offers(rng, job.slots, 4))).in_time, name
    assert feasible > 1000
    assert ON_DEMAND not in POOL  # it alone has no guard
