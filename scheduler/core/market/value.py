"""The cost of a slot, the value of an end, and what becomes of a job that is late."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from scheduler.core.market.types import DeadlineJob, Progress, SlotOffer

ROUNDING = 1e-9
GENEROUS = 1.5  # value of an end in time over the cost on demand, where no budget is given


class LateEnd(NamedTuple):
    """How a job ends that is unfinished at its deadline.

    It takes so many more slots, and costs so much more. slots 0: it is given up, as going on would cost
    more than it is worth.
    """

    slots: int
    cost: float
    value: float


def split(job: DeadlineJob, size: int, offer: SlotOffer) -> tuple[int, int]:
    """How many of these GPUs are on spot nodes, and how many on demand."""
    usable = offer.usable(job.on_demand_price)
    if not job.mixes and usable < size:
        return 0, size
    spot = min(size, int(usable))
    return spot, size - spot


def slot_cost(job: DeadlineJob, size: int, offer: SlotOffer) -> float:
    """Money for this size in one slot."""
    spot, on_demand = split(job, size, offer)
    return spot * (offer.price or 0.0) + on_demand * job.on_demand_price


def work_in(job: DeadlineJob, size: int, before: int) -> float:
    """μH(n): the work of a slot with this size, after the size before it."""
    return job.kept(size, before) * job.rate(size)


def value_at(job: DeadlineJob, slots: float) -> float:
    """V(T): what an end after so many slots is worth."""
    if slots <= job.slots:
        return job.value
    last = job.grace * job.slots
    return max(0.0, job.value * (last - slots) / (last - job.slots)) if last > job.slots else 0.0


def late_end(job: DeadlineJob, done: float, size: int) -> LateEnd:
    """Go on at the largest size on demand, or stop, whichever pays more.

    A live job is never stopped for that: it goes on.
    """
    if job.largest == 0:
        return LateEnd(0, 0.0, 0.0)
    left = job.work - done
    first = work_in(job, job.largest, size)
    more = 1 + max(0, ceil((left - first) / job.rate(job.largest) - ROUNDING))
    cost = more * job.largest * job.on_demand_price
    value = value_at(job, job.slots + more)
    return LateEnd(more, cost, value) if value > cost else LateEnd(0, 0.0, 0.0)


def can_end_in_time(job: DeadlineJob, progress: Progress) -> bool:
    """Would the largest size on demand, from this slot on, end the job in time?"""
    slots = job.slots - progress.slot + 1
    if slots < 1:
        return progress.done >= job.work - ROUNDING
    most = work_in(job, job.largest, progress.size) + (slots - 1) * job.rate(job.largest)
    return job.work - progress.done <= most + ROUNDING


def guarded(job: DeadlineJob, progress: Progress, size: int) -> int:
    """The size, or the largest one where the job could not end in time after it.

    With it, a job that can still end in time by on-demand nodes does.
    """
    follow = job.slots - progress.slot
    left = job.work - progress.done - work_in(job, size, progress.size)
    most = (job.kept(job.largest, size) + follow - 1) * job.rate(job.largest) if follow > 0 else 0.0
    return job.largest if left > most + ROUNDING else size
