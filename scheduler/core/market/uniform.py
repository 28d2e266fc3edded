"""The uniform-progress rule: one size, at times idle, on spot or on demand.

Source: Wu et al., Can't Be Late: Optimizing Spot Instance Savings under Deadlines, NSDI 2024.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from scheduler.core.market.types import DeadlineJob
from scheduler.core.market.value import ROUNDING


class Mode(StrEnum):
    """Where a job of one size is."""

    IDLE = "idle"
    SPOT = "spot"
    ON_DEMAND = "on_demand"


class Stand(NamedTuple):
    """How far a job of one size is; all in slots of that size.

    work: C₀, at the beginning. deadline: R₀, from the beginning. changeover: δ, what a start costs.
    """

    elapsed: float
    done: float
    work: float
    deadline: float
    changeover: float

    @property
    def is_urgent(self) -> bool:
        """Must it be on demand from now on, before another slot is over?"""
        left, time = self.work - self.done, self.deadline - self.elapsed
        return time < left + 2 * self.changeover + 1.0 - ROUNDING

    def is_on_pace(self, ahead: float = 0.0) -> bool:
        """Is as much done as even progress would have done so many slots from now?"""
        return self.done >= (self.elapsed + ahead) * self.work / self.deadline - ROUNDING


def next_mode(mode: Mode, stand: Stand, *, spot: bool) -> Mode:
    """Where the job is in the slot that begins. spot: is its size on offer?"""
    if mode is Mode.SPOT and spot:
        return mode
    if mode is Mode.SPOT:
        mode = Mode.IDLE  # taken away
    if stand.is_urgent:
        return Mode.ON_DEMAND
    if mode is Mode.IDLE:
        if spot:
            return Mode.SPOT
        return Mode.IDLE if stand.is_on_pace() else Mode.ON_DEMAND
    return Mode.SPOT if spot and stand.is_on_pace(2 * stand.changeover) else Mode.ON_DEMAND


def fixed_size(job: DeadlineJob) -> int:
    """The smallest size that ends in time when it runs from the first slot on."""
    runs = job.growing + job.slots - 1
    return next((n for n in job.sizes if n and job.rate(n) * runs >= job.work - ROUNDING), job.largest)
