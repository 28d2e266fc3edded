"""Starts and ends with 80 % intervals, of several plays of one given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from statistics import NormalDist, median

from knowledge.core.domain.types import Interval
from scheduler.core.ahead.durations import STRATA, Draws
from scheduler.core.ahead.play import Lived, QueuePlay
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.types import GpuId

LEAST_PLAYS = 5
INTERVAL = 0.8
JUDGED = 50  # forecasts that came true or not, before the width of intervals follows them
LEAST_WIDTH_S = 5.0  # on either side: a tick, and what it takes to apply it
LEAST_WIDTH = 0.02  # of the time until then: as exact as decisions far ahead are (`drivers.COARSE`)
WIDEST = 10.0  # by how much intervals may be widened

_NORMAL = NormalDist()
More = Callable[[], bool]
Plays = Sequence[Mapping[str, Lived]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When a job starts and ends, in s since 1970.

    A bound of None is beyond what was played.

    end None: it is not known. plays: how many it was made of. gpus: where it starts in the most typical of
    them, so that the GPUs of several jobs belong together.
    """

    start: Interval
    end: Interval | None
    plays: int
    gpus: tuple[GpuId, ...] = ()


@dataclass(frozen=True, slots=True)
class IntervalWidths:
    """By what the distances of an interval's bounds from its median are multiplied."""

    below: float = 1.0
    above: float = 1.0


def play_all(given: PlayInput, *, more: Callable[[int], More] | None = None) -> Plays:
    """The given played `STRATA` times, or as often as `more` allows.

    more: makes what a play asks before each decision, given how many plays are done already; a play that
    was cut short counts among the first ones, since it tells what it has seen.
    """
    draws, found = Draws(given.seed), []
    for number in range(STRATA):
        may_go_on = more(number) if more else _always
        if number and not may_go_on():
            break
        found.append(QueuePlay(given, draws, number).run(may_go_on))
    return found


def _always() -> bool:
    return True


def forecasts(given: PlayInput, plays: Plays, widths: IntervalWidths | None = None) -> dict[str, Forecast]:
    """Of each job that started in more than half of the plays.

    No bound is nearer to the median than the time between two decisions.
    """
    least_s = max(LEAST_WIDTH_S, given.policy.round_s or 0.0)
    interval = partial(_interval, now=given.now, least_s=least_s, widths=widths or IntervalWidths())
    starts: dict[str, Interval] = {}
    for job in plays[0] if plays else ():
        start = interval([play[job].start for play in plays])
        if start is not None:
            starts[job] = start
    typical = _by_likeness(plays, starts)
    return {
        job: Forecast(
            start=start,
            end=interval([play[job].end for play in plays]),
            plays=len(plays),
            gpus=next((play[job].gpus for play in typical if play[job].gpus), ()),
        )
        for job, start in starts.items()
    }


def _by_likeness(plays: Plays, starts: Mapping[str, Interval]) -> Plays:
    """The plays, the most typical first.

    They have the most of these starts, and then the starts that lie nearest to the medians.
    """

    def off(play: Mapping[str, Lived]) -> tuple[int, float]:
        pairs = [(play[job].start, start.value) for job, start in starts.items()]
        started = [abs(at - middle) for at, middle in pairs if at is not None]
        return -len(started), sum(started)

    return sorted(plays, key=off)


def _interval(
    times: Iterable[float | None], *, now: float, least_s: float, widths: IntervalWidths
) -> Interval | None:
    ordered = sorted(inf if at is None else at for at in times)
    middle = median(ordered)
    if not isfinite(middle):
        return None
    tail = (1 - INTERVAL) / 2
    low, high = _quantile(ordered, tail), _quantile(ordered, 1 - tail)
    least_s = max(least_s, LEAST_WIDTH * (middle - now))
    below = max((middle - low) * widths.below, least_s)
    above = max((high - middle) * widths.above, least_s)
    return Interval(middle, max(now, middle - below), middle + above if isfinite(above) else None)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Of a future value that is like these.

    Beyond the outermost it follows the normal distribution.
    """
    count = len(ordered)
    place = share * (count + 1) - 1
    if 0 <= place <= count - 1:
        low = ordered[int(place)]
        high = ordered[min(int(place) + 1, count - 1)]
        return low if low == high else low + (place - int(place)) * (high - low)
    if count == 1:
        return ordered[0]
    outermost = ordered[0] if place < 0 else ordered[-1]
    if not isfinite(outermost):
        return outermost
    reached = abs(_NORMAL.inv_cdf(1 / (count + 1)))
    middle = median(ordered)
    return middle + (outermost - middle) * abs(_NORMAL.inv_cdf(share)) / reached


def misses(interval: Interval, actual: float) -> tuple[float | None, float | None]:
    """The error of a forecast, below and above, in distances of its bounds.

    None on the other side.
    """
    if interval.low is None or interval.high is None:
        return None, None
    if actual < interval.value:
        return (interval.value - actual) / max(interval.value - interval.low, LEAST_WIDTH_S), None
    return None, (actual - interval.value) / max(interval.high - interval.value, LEAST_WIDTH_S)


def calibrated(judged: Iterable[tuple[Interval, float]], least: int = JUDGED) -> IntervalWidths:
    """Widths under which 80 % of these forecasts would have held.

    judged: each interval as it was promised, and what became of it, of jobs that did not wait at the same
    time. A tenth is missed on each side.

    Split conformal prediction with the interval's own width as the scale; 1 until so many are judged.
    """
    pairs = [misses(interval, actual) for interval, actual in judged]
    pairs = [pair for pair in pairs if pair != (None, None)]
    if len(pairs) < least:
        return IntervalWidths()
    below = _width([0.0 if early is None else early for early, _ in pairs])
    return IntervalWidths(below, _width([0.0 if late is None else late for _, late in pairs]))


def _width(scores: Sequence[float]) -> float:
    rank = min(len(scores), int((1 + INTERVAL) / 2 * (len(scores) + 1) + 0.999)) - 1
    return min(max(sorted(scores)[rank], 1 / WIDEST), WIDEST)
