"""The changes that help, with the start that each brings and its costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import mean, median
from typing import Any

from knowledge.core.domain.types import Option
from scheduler.core.ahead.forecast import Forecast, IntervalWidths, forecasts
from scheduler.core.ahead.play import Lived
from scheduler.core.changes.possible import ChangeKind
from scheduler.core.changes.trying import LEAST_PLAYS, Trials, TriedChange

LEAST_GAIN_S = 10.0
LEAST_GAIN = 0.05  # of the wait without the change
NEVER_LATER = 0.95  # share of the plays in which it may not start later
LATER_S = 1.0  # what counts as later
MOST_UNFINISHED = 0.25  # the chance that its time limit ends it
MOST_OF_A_KIND = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulChange:
    """A change with the forecast that it brings.

    sooner_s: the median over the plays; None: without it there is no forecast. option: with which it would
    run most likely. delayed: jobs that wait now and would start later, and delay_s, by how long all together,
    both on average. unfinished: the chance that its time limit ends it before it is done.
    """

    kind: ChangeKind
    subject: str
    change: Mapping[str, Any]
    forecast: Forecast
    sooner_s: float | None
    option: Option | None
    delayed: float
    delay_s: float
    unfinished: float = 0.0


def helpful_changes(
    trials: Trials, job: str, now: float, widths: IntervalWidths | None = None
) -> list[HelpfulChange]:
    """Return those that start the job sooner, and almost never later, best first.

    A placement is left out if another one starts and ends no later and costs no more.
    """
    waits = [_wait(lives, job, now) for lives in trials.as_it_is]
    found = [
        _helpful(tried, job, widths)
        for tried in trials.changes
        if LEAST_PLAYS <= len(tried.lives) == len(trials.as_it_is)
        and _helps(tried, waits)
        and not _cuts(tried, trials)
    ]
    kept = sorted((one for one in found if one), key=_rank)
    kinds: Counter[ChangeKind] = Counter()
    best: list[HelpfulChange] = []
    for one in kept:
        if not any(_beats(other, one) for other in best) and kinds[one.kind] < MOST_OF_A_KIND:
            kinds[one.kind] += 1
            best.append(one)
    return best


def _wait(lives: Mapping[str, Lived], job: str, now: float) -> float | None:
    life = lives.get(job)
    return None if life is None or life.start is None else life.start - now


def _helps(tried: TriedChange, waits: Sequence[float | None]) -> bool:
    known = [wait for wait in waits if wait is not None]
    least_s = max(LEAST_GAIN_S, LEAST_GAIN * median(known)) if known else LEAST_GAIN_S
    never_later = sum(gain >= -LATER_S for gain in tried.gains) >= NEVER_LATER * len(tried.gains)
    return never_later and tried.gain_s >= least_s


def _cuts(tried: TriedChange, trials: Trials) -> bool:
    """Would its time limit end it too often, and more often than without the change?"""
    return tried.unfinished > max(MOST_UNFINISHED, trials.unfinished)


def _helpful(tried: TriedChange, job: str, widths: IntervalWidths | None) -> HelpfulChange | None:
    possible = tried.possible
    own = [{job: lives.get(job, Lived(None, None))} for lives in tried.lives]
    forecast = forecasts(possible.given, own, widths).get(job)
    if forecast is None:
        return None
    delays = [_delays(before, after, job) for before, after in tried.others] or [[]]
    return HelpfulChange(
        kind=possible.kind,
        subject=possible.subject,
        change=possible.change,
        forecast=forecast,
        sooner_s=tried.gain_s if isfinite(tried.gain_s) else None,
        option=tried.option,
        delayed=mean(len(one) for one in delays),
        delay_s=mean(sum(one) for one in delays),
        unfinished=tried.unfinished,
    )


def _delays(before: Mapping[str, Lived], after: Mapping[str, Lived], job: str) -> list[float]:
    """The delays of the starts of other jobs, of those that start later."""
    pairs = ((before[one].start, after[one].start) for one in before.keys() & after.keys() - {job})
    later = (new - old for old, new in pairs if old is not None and new is not None)
    return [by_s for by_s in later if by_s > LATER_S]


def _rank(one: HelpfulChange) -> tuple[float, bool, float, str]:
    cost = one.option.cost.value if one.option else 0.0
    return one.forecast.start.value, not one.change, cost, one.subject


def _beats(other: HelpfulChange, one: HelpfulChange) -> bool:
    """Is this placement no better than that one in anything?"""
    if not one.kind == other.kind == ChangeKind.PLACEMENT or not one.option or not other.option:
        return False
    end, other_end = one.forecast.end, other.forecast.end
    return (
        other.forecast.start.value <= one.forecast.start.value
        and (end is None or (other_end is not None and other_end.value <= end.value))
        and other.option.cost.value <= one.option.cost.value
    )
