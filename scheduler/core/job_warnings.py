"""Likely trouble of a running job, and the remedies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from knowledge.core.domain.types import Interval
from scheduler.core.remaining_time import chance_beyond

# A warning is given at the first and taken back at the second chance. At 0.8 more of the warnings are early,
# and fewer than nine in ten are right (benchmarks/scheduler/reforecast.py).
LIKELY, UNLIKELY = 0.9, 0.5
PARTS = 6


class Risk(StrEnum):
    """The limit that a job will probably pass."""

    LATE = "late"
    OVER_BUDGET = "over-budget"
    OUT_OF_MEMORY = "out-of-memory"
    TIME_LIMIT = "time-limit"


@dataclass(frozen=True, slots=True)
class WarningWords:
    """A warning in words for the job's owner.

    It says what will happen, what can be done, and what stands there once it is over.
    """

    text: str
    remedy: str
    over: str


WARNINGS = {
    Risk.LATE: WarningWords(
        "It will probably end after its deadline.",
        "Pause and resume it: it may then continue on faster GPUs, if some are free. Cancel it if a late"
        " result is of no use.",
        "It may end before its deadline after all.",
    ),
    Risk.OVER_BUDGET: WarningWords(
        "It will probably cost more than its budget.",
        "Pause and resume it: it may then continue on cheaper GPUs, if some are free. Cancel it if the budget"
        " must be kept.",
        "It may keep its budget after all.",
    ),
    Risk.OUT_OF_MEMORY: WarningWords(
        "It will probably run out of memory: what it needs keeps growing.",
        "If it does, it starts once more from its last checkpoint, with a configuration that needs less. To"
        " avoid that, cancel it and submit it with shorter samples or a smaller batch size per GPU.",
        "Its memory may last after all.",
    ),
    Risk.TIME_LIMIT: WarningWords(
        "It will probably be stopped before its end: it reaches its time limit first.",
        "Raise its time limit under Change, or ask an administrator to. At the limit it saves a checkpoint"
        " and ends as failed.",
        "It may end within its time limit after all.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakGrowth:
    """The growth of an attempt's peak, in bytes, beside its limit.

    `peaks`: after each part of its steps so far. `capacity`: of its GPUs.
    """

    peaks: tuple[float, ...]
    steps: int
    steps_left: int
    capacity: float

    @property
    def will_not_last(self) -> bool:
        """Whether the peak passes the limit if it goes on growing.

        It is taken to grow as slowly as in any part but the first. Peaks grow while longer rows turn up, but
        ever less often: growth that does not stop is another thing.
        """
        growth = min((later - before for before, later in pairwise(self.peaks[1:])), default=0.0)
        return self.peaks[-1] + growth / (self.steps / len(self.peaks)) * self.steps_left > self.capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A running job's time left beside its limits.

    Amounts are in the currency of the nodes' prices.

    memory: its peak and its limit; None: not looked at now. stops_in_s: until its time limit.
    """

    left: Interval
    deadline_in_s: float | None = None
    budget: float | None = None
    spent: float = 0.0
    cost_per_s: float = 0.0
    memory: PeakGrowth | None = None
    stops_in_s: float | None = None


def chances(outlook: Outlook) -> dict[Risk, float]:
    """How likely each limit that the job has is passed."""
    found = {}
    if outlook.deadline_in_s is not None:
        found[Risk.LATE] = chance_beyond(outlook.left, outlook.deadline_in_s)
    if outlook.budget is not None:
        over = outlook.budget - outlook.spent
        cost = outlook.left.scaled(outlook.cost_per_s)
        found[Risk.OVER_BUDGET] = float(over < 0) if not outlook.cost_per_s else chance_beyond(cost, over)
    if outlook.memory is not None:
        found[Risk.OUT_OF_MEMORY] = LIKELY if outlook.memory.will_not_last else 0.0
    if outlook.stops_in_s is not None:
        found[Risk.TIME_LIMIT] = chance_beyond(outlook.left, outlook.stops_in_s)
    return found


def likely(found: Mapping[Risk, float], before: Collection[str]) -> list[Risk]:
    """Return the risks to warn of, given those that were warned of before.

    A risk that was not looked at stays.
    """
    return [
        risk
        for risk in Risk
        if (risk in before if risk not in found else found[risk] >= (UNLIKELY if risk in before else LIKELY))
    ]
