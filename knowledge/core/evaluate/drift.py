"""A check of whether promises still hold.

It computes coverage and error of recent runs, and decides when to raise the alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from knowledge.core.domain.types import Interval
from knowledge.core.model.intervals import ALPHA

RECENT = 50  # runs that are judged
ENOUGH = 15  # fewer say nothing
UNLIKELY = 0.01  # chance below which too few hits are no accident
WORSE = 2.0  # times the error of the runs before


def absolute_error(promised: float, measured: float) -> float:
    """The distance of a promise from the measured value, as a share of that."""
    return abs(promised - measured) / measured


@dataclass(frozen=True, slots=True)
class PromiseOutcome:
    """A promised rate and what was measured, tokens/s."""

    promised: Interval
    measured: float

    @property
    def error(self) -> float:
        return absolute_error(self.promised.value, self.measured)

    @property
    def inside(self) -> bool | None:
        """Was it inside the interval? None where a bound was unknown."""
        low, high = self.promised.low, self.promised.high
        return None if low is None or high is None else low <= self.measured <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The judgement of recent runs.

    `coverage` and `median_error` are None without any runs; `alarm` says what is wrong.
    """

    runs: int
    coverage: float | None
    median_error: float | None
    alarm: str


def assess_drift(outcomes: Sequence[PromiseOutcome]) -> Judgement:
    """Judge the recent runs against their intervals and the runs before them.

    Outcomes come oldest first.
    """
    recent, before = outcomes[-RECENT:], outcomes[-2 * RECENT : -RECENT]
    inside = [outcome.inside for outcome in recent if outcome.inside is not None]
    return Judgement(
        runs=len(recent),
        coverage=sum(inside) / len(inside) if inside else None,
        median_error=_error(recent),
        alarm=_missed(inside) or _grown(recent, before),
    )


def _error(outcomes: Sequence[PromiseOutcome]) -> float | None:
    return median(outcome.error for outcome in outcomes) if outcomes else None


def _missed(inside: Sequence[bool]) -> str:
    from scipy.special import bdtr  # a daily check alone needs it, and it takes a sixth of a second

    hits, runs = sum(inside), len(inside)
    if runs < ENOUGH or bdtr(hits, runs, 1 - ALPHA) >= UNLIKELY:
        return ""
    return f"Only {hits} of the last {runs} runs ended within their 80 % interval; predictions have drifted."


def _grown(recent: Sequence[PromiseOutcome], before: Sequence[PromiseOutcome]) -> str:
    now, then = _error(recent), _error(before)
    if min(len(recent), len(before)) < ENOUGH or now is None or not then or now <= WORSE * then:
        return ""
    return f"The median error rose from {then:.0%} to {now:.0%}; hardware or software may have changed."
