"""Ways of deciding how many GPUs a job has in a slot; one function each.

`pace` is the published committed-horizon scheme with the expected progress as its target, `ahanp` its
companion without forecasts; `uniform` is the uniform-progress rule of Can't Be Late (NSDI 2024). `greedy` and
`to-go` are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from scheduler.core.market.planner import Array, cheapest
from scheduler.core.market.types import NOTHING, DeadlineJob, Progress, SlotOffer
from scheduler.core.market.uniform import Mode, Stand, fixed_size, next_mode
from scheduler.core.market.value import ROUNDING, can_end_in_time, guarded, split, work_in


class SlotPlan(NamedTuple):
    """Sizes for this slot and those that follow, as planned when the slot began."""

    slot: int
    sizes: tuple[int, ...]

    def size_in(self, slot: int) -> int | None:
        """The size for a slot; None if it is not planned that far."""
        ahead = slot - self.slot
        return self.sizes[ahead] if 0 <= ahead < len(self.sizes) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that a decider may know when a slot begins.

    offer: of this slot. foreseen: of the slots to follow, as far as known. usual: means of the last seven
    days. plans: made in slots before, newest last.
    """

    job: DeadlineJob
    progress: Progress
    offer: SlotOffer
    foreseen: Sequence[SlotOffer] = ()
    usual: SlotOffer = NOTHING
    plans: Sequence[SlotPlan] = ()

    @property
    def left(self) -> float:
        """Work that is left."""
        return self.job.work - self.progress.done

    def window(self, ahead: int) -> tuple[SlotOffer, ...]:
        """Offers of this slot and of as many to follow as there are until the deadline.

        Beyond what is foreseen, the last of it goes on.
        """
        follow = min(ahead, self.job.slots - self.progress.slot)
        known = (self.offer, *self.foreseen[:follow])
        return (*known, *[known[-1]] * (follow + 1 - len(known)))


class SlotChoice(NamedTuple):
    """A size for the slot, and the plan that it comes from, if there is one."""

    size: int
    plan: SlotPlan | None = None


class SlotPurchase(NamedTuple):
    """The size of a slot, and the offer of its GPUs; `NOTHING`: all on demand."""

    size: int
    offer: SlotOffer


class Decider(Protocol):
    def __call__(self, now: Situation, /) -> SlotChoice: ...


def on_demand(now: Situation) -> SlotChoice:
    """The smallest size that keeps pace, never on spot nodes, and without the guard."""
    job, progress = now.job, now.progress
    needed = now.left / max(1, job.slots - progress.slot + 1)
    return SlotChoice(next((size for size in job.sizes if job.rate(size) >= needed - ROUNDING), job.largest))


def greedy(now: Situation) -> SlotChoice:
    """Take as many spot GPUs as there are, if they cost no more than on demand."""
    return SlotChoice(_largest_within(now, 1.0))


def ahanp(now: Situation, *, sigma: float) -> SlotChoice:
    """Spot GPUs that are cheap enough; behind the even pace, at least what catches up."""
    job, progress = now.job, now.progress
    gap = progress.slot * job.work / job.slots - progress.done
    cheap = _largest_within(now, sigma)
    if gap <= ROUNDING:
        return SlotChoice(cheap)
    catches_up = (size for size in job.sizes if work_in(job, size, progress.size) >= gap - ROUNDING)
    return SlotChoice(max(next(catches_up, job.largest), cheap))


def pace(now: Situation, *, ahead: int, averaged: int, sigma: float) -> SlotChoice:
    """The cheapest sizes that reach the even pace `ahead` slots from now."""
    job, progress = now.job, now.progress
    window = now.window(ahead)
    end = progress.slot + len(window) - 1
    missing = min(job.work, end * job.work / job.slots) - progress.done
    if missing <= ROUNDING:
        plan = SlotPlan(progress.slot, (_largest_within(now, sigma),))
    else:
        sizes = cheapest(job, missing, progress.size, window, _must_be_done)
        plan = SlotPlan(progress.slot, sizes or (job.largest,) * len(window))
    return SlotChoice(_mean_size(now, plan, averaged), plan)


def to_go(now: Situation, *, ahead: int, averaged: int) -> SlotChoice:
    """The sizes for which the window and the usual price of the rest cost least.

    Among equals it takes spot GPUs, which may be gone later, and waits with on-demand ones.
    """
    job, progress = now.job, now.progress
    window = now.window(ahead)
    follow = job.slots - progress.slot - len(window) + 1
    rest = partial(rest_costs, job, now.usual, slots=follow)
    sizes = cheapest(job, now.left, progress.size, window, rest, waits=True)
    plan = SlotPlan(progress.slot, sizes or (job.largest,) * len(window))
    return SlotChoice(_mean_size(now, plan, averaged), plan)


def uniform(now: Situation) -> SlotChoice:
    """One size; idle, on spot or on demand by the uniform-progress rule."""
    job, progress = now.job, now.progress
    size = fixed_size(job)
    spot = split(job, size, now.offer)[0] == size
    mode = Mode.IDLE
    if progress.size:
        mode = Mode.SPOT if progress.on_spot else Mode.ON_DEMAND
    stand = Stand(
        elapsed=progress.slot - 1,
        done=progress.done / job.rate(size),
        work=job.work / job.rate(size),
        deadline=job.slots,
        changeover=1.0 - job.growing,
    )
    return SlotChoice(0 if next_mode(mode, stand, spot=spot) is Mode.IDLE else size)


def decide(decider: Decider, now: Situation) -> tuple[SlotChoice, SlotPurchase]:
    """The decider's choice, as far as guard and caution allow it."""
    choice, job, progress = decider(now), now.job, now.progress
    if decider is on_demand:
        return choice, SlotPurchase(choice.size, NOTHING)
    size = guarded(job, progress, choice.size)
    after_a_lost_slot = Progress(progress.slot + 1, progress.done, 0)
    if job.cautious and split(job, size, now.offer)[0] and not can_end_in_time(job, after_a_lost_slot):
        return choice, SlotPurchase(job.largest, NOTHING)
    return choice, SlotPurchase(size, now.offer)


def rest_costs(job: DeadlineJob, usual: SlotOffer, left: Array, *, slots: int) -> Array:
    """G(w, k): what work that is left costs in so many slots at usual spot offers.

    Infinite where the largest size could not do it.
    """
    rate = job.rate(job.largest)
    a_gpu = rate / job.largest
    on_spot = np.minimum(left, slots * min(usual.usable(job.on_demand_price), job.largest) * a_gpu)
    money = (on_spot * (usual.price or 0.0) + (left - on_spot) * job.on_demand_price) / a_gpu
    return np.where(left > slots * rate + ROUNDING, np.inf, money)


def _must_be_done(left: Array) -> Array:
    return np.where(left > ROUNDING, np.inf, 0.0)


def _largest_within(now: Situation, share: float) -> int:
    """The largest size that is on offer for at most this share of the on-demand price."""
    usable = now.offer.usable(share * now.job.on_demand_price)
    return max(size for size in now.job.sizes if size <= usable)


def _mean_size(now: Situation, plan: SlotPlan, averaged: int) -> int:
    """The size nearest to the mean of what the newest plans say of this slot.

    Of two that are equally near it is the larger.
    """
    slot = now.progress.slot
    recent = [one for one in now.plans if one.slot > slot - averaged]
    planned = [size for one in (*recent, plan) if (size := one.size_in(slot)) is not None]
    mean = sum(planned) / len(planned)
    return min(now.job.sizes, key=lambda size: (round(abs(size - mean), 9), -size))
