"""The best that could have been done: a yardstick for reports and tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.core.market.types import DeadlineJob, SlotOffer
from scheduler.core.market.value import ROUNDING, late_end, slot_cost, value_at, work_in

_Way = tuple[float, float]  # cost so far, work done


def optimum(job: DeadlineJob, offers: Sequence[SlotOffer]) -> float:
    """The highest utility of any sizes, by an exact dynamic program.

    Of the ways to have a size in a slot it keeps those that no other one beats in both cost and work: more
    work done for no more money can only be better.
    """
    best = 0.0  # nothing is done
    ways: dict[int, list[_Way]] = {0: [(0.0, 0.0)]}
    for slot, offer in enumerate(offers[: job.slots], start=1):
        following: dict[int, list[_Way]] = {}
        for size in job.sizes:
            price = slot_cost(job, size, offer)
            found = [
                (cost + price, done + work_in(job, size, before))
                for before, known in ways.items()
                for cost, done in known
            ]
            ended = [cost for cost, done in found if done >= job.work - ROUNDING]
            best = max(best, value_at(job, slot) - min(ended, default=float("inf")))
            following[size] = _unbeaten((cost, done) for cost, done in found if done < job.work - ROUNDING)
        ways = following
    for size, known in ways.items():
        for cost, done in known:
            late = late_end(job, done, size)
            best = max(best, late.value - late.cost - cost)
    return best


def _unbeaten(ways: Iterable[_Way]) -> list[_Way]:
    kept: list[_Way] = []
    for cost, done in sorted(ways, key=lambda way: (way[0], -way[1])):
        if not kept or done > kept[-1][1]:
            kept.append((cost, done))
    return kept
