"""The cheapest sizes for the next slots.

A table over slot, size before and work left finds them. Work is counted in units: the greatest common
divisor of what any size does in a slot, or a share of the work where that would make the table too long;
then work is rounded down, so that a plan never falls short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler.core.market.types import DeadlineJob, SlotOffer
from scheduler.core.market.value import ROUNDING, slot_cost, split, work_in

LONGEST = 512  # units of work in a table
_FINE = 1e-6  # relative to the work; smaller differences are rounding
_DECIMALS = 9

Array = NDArray[np.float64]


def cheapest(
    job: DeadlineJob,
    left: float,
    before: int,
    offers: Sequence[SlotOffer],
    after: Callable[[Array], Array],
    *,
    waits: bool = False,
) -> tuple[int, ...] | None:
    """The sizes in the slots of these offers that cost least.

    None if each way costs infinitely much. left: work that is left, more than 0. before: the size in the
    slot before. after: what work that is still left after the window costs, for an array of amounts. Among
    equals the larger sizes come earlier; if it `waits`, only as far as they are on spot nodes.
    """
    sizes = job.sizes
    unit = _unit(job, left)
    units = ceil(left / unit - ROUNDING)
    steps = _steps(job, unit)
    prices = np.array([[slot_cost(job, size, offer) for size in sizes] for offer in offers])
    remaining = np.maximum(np.arange(units + 1)[None, None, :] - steps[:, :, None], 0)
    amounts = np.minimum(np.arange(units + 1) * unit, left)
    costs = np.broadcast_to(after(amounts), (len(sizes), units + 1))
    choices: list[NDArray[np.int64]] = []
    for price, offer in zip(prices[::-1], offers[::-1], strict=True):
        order = _preferred(job, offer, waits=waits)
        # by size before, size and units left: the size's price, then what is left costs after it
        totals = price[None, :, None] + costs[np.arange(len(sizes))[None, :, None], remaining]
        totals = np.round(totals, _DECIMALS)
        choices.append(order[totals[:, order].argmin(axis=1)])
        costs = totals.min(axis=1)
    place = sizes.index(before)
    if not np.isfinite(costs[place, units]):
        return None
    return _followed(sizes, place, units, steps, choices[::-1])


def _preferred(job: DeadlineJob, offer: SlotOffer, *, waits: bool) -> NDArray[np.int64]:
    """The places of the sizes, of equals the preferred first."""
    bought = [split(job, size, offer)[1] if waits else 0 for size in job.sizes]
    return np.array(sorted(range(len(job.sizes)), key=lambda place: (bought[place], -place)))


def _followed(
    sizes: tuple[int, ...], place: int, units: int, steps: Any, choices: Sequence[NDArray[np.int64]]
) -> tuple[int, ...]:
    """The sizes that the tables say, from this size and work left."""
    plan = []
    for choice in choices:
        chosen = int(choice[place, units])
        units = max(0, units - int(steps[place, chosen]))
        plan.append(sizes[chosen])
        place = chosen
    return tuple(plan)


def _steps(job: DeadlineJob, unit: float) -> NDArray[np.int64]:
    """Units of work by size before and size."""
    return np.array(
        [[int(work_in(job, size, before) / unit + _FINE) for size in job.sizes] for before in job.sizes],
        dtype=np.int64,
    )


def _unit(job: DeadlineJob, left: float) -> float:
    """The amount of work that all amounts are multiples of, if that is not too small."""
    scale = job.work * _FINE
    amounts = [
        round(work_in(job, size, before) / scale) for size in job.sizes if size for before in job.sizes
    ]
    common = gcd(*amounts) * scale if amounts else left
    return max(common, left / LONGEST)
