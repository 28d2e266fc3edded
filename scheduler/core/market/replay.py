"""A job lived through known offers under a decider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from scheduler.core.market.deciders import Decider, Situation, SlotPlan, decide, on_demand
from scheduler.core.market.types import NOTHING, DeadlineJob, Progress, SlotOffer
from scheduler.core.market.value import GENEROUS, ROUNDING, late_end, slot_cost, split, value_at, work_in

Foresee = Callable[[int], Sequence[SlotOffer]]  # by slot: what was foreseen then of the slots to follow


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A job from its first slot to its end.

    sizes, spot: GPUs by slot, in all and on spot nodes. slots: when it ended, None if it was given up.
    interruptions: slots in which spot GPUs had been taken away. spare: the share of the last slot that was
    not needed, and what it cost.
    """

    sizes: tuple[int, ...]
    spot: tuple[int, ...]
    cost: float
    value: float
    slots: int | None
    in_time: bool
    interruptions: int
    spare: float = 0.0
    spare_cost: float = 0.0

    @property
    def utility(self) -> float:
        return self.value - self.cost


def nothing_foreseen(_: int) -> Sequence[SlotOffer]:
    return ()


def live(
    job: DeadlineJob,
    decider: Decider,
    offers: Sequence[SlotOffer],
    foresee: Foresee = nothing_foreseen,
    usual: SlotOffer = NOTHING,
) -> Life:
    """Play the slots until the job's deadline, then what becomes of a late job."""
    done, size, on_spot, cost = 0.0, 0, False, 0.0
    sizes: list[int] = []
    spots: list[int] = []
    plans: list[SlotPlan] = []
    for slot, offer in enumerate(offers[: job.slots], start=1):
        now = Situation(
            job=job, progress=Progress(slot, done, size, on_spot), offer=offer, foreseen=foresee(slot),
            usual=usual, plans=plans,
        )  # fmt: skip
        choice, (chosen, paid) = decide(decider, now)
        plans += [choice.plan] if choice.plan else []
        cost += slot_cost(job, chosen, paid)
        done += work_in(job, chosen, size)
        size, spot = chosen, split(job, chosen, paid)[0]
        on_spot = spot > 0
        sizes.append(size)
        spots.append(spot)
        if done >= job.work - ROUNDING:
            spare = min(1.0, max(0.0, done - job.work) / job.rate(chosen))
            ended_early = _life(job, offers, sizes, spots, cost, slot)
            return replace(ended_early, spare=spare, spare_cost=spare * slot_cost(job, chosen, paid))
    late = late_end(job, done, size)
    ended = job.slots + late.slots if late.slots else None
    sizes += [job.largest] * late.slots
    return _life(job, offers, sizes, spots, cost + late.cost, ended)


def _life(
    job: DeadlineJob,
    offers: Sequence[SlotOffer],
    sizes: Sequence[int],
    spots: Sequence[int],
    cost: float,
    ended: int | None,
) -> Life:
    usable = [offer.usable(job.on_demand_price) for offer in offers]
    return Life(
        sizes=tuple(sizes),
        spot=tuple(spots),
        cost=cost,
        value=0.0 if ended is None else value_at(job, ended),
        slots=ended,
        in_time=ended is not None and ended <= job.slots,
        interruptions=sum(held > left for (held, _), (_, left) in pairwise(zip(spots, usable, strict=False))),
    )


def valued(job: DeadlineJob, budget: float | None = None) -> DeadlineJob:
    """The job with the value of its end.

    That is its budget, else half as much again as its cost on demand.
    """
    if budget is not None:
        return replace(job, value=budget)
    worth = replace(job, value=float("inf"))
    return replace(job, value=GENEROUS * live(worth, on_demand, [NOTHING] * job.slots).cost)
