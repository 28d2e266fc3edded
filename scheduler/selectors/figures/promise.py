"""Promised against actual figures.

They are the same under the same names, for every interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from knowledge.core.domain.cost import cost
from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Interval, Option, Source
from portal.events.models import Event
from portal.events.types import EventType
from scheduler.core.remaining_time import corrected
from scheduler.core.spending import Spent
from scheduler.models import Attempt, Job
from scheduler.selectors.figures.cost import JobCost, hourly_price
from scheduler.selectors.figures.times import Ending, duration_s
from scheduler.selectors.figures.training import attempt_that_counts
from scheduler.selectors.silence import silent_since
from scheduler.states import TERMINAL, JobState

COMPARED = ("duration_s", "tokens_per_second", "peak_memory_bytes", "cost")
OF_A_WHOLE_RUN = frozenset({"duration_s", "cost"})  # a run that broke off says nothing about these


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedAndActual:
    """One promised figure with its interval, and what became of it; None is unknown.

    priced_later: a cost that was not promised, as its GPUs had no price then: the promised duration at the
    price that they have now, or had at the attempt's end.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    actual: float | None
    final: bool = False
    priced_later: bool = False

    @property
    def inside(self) -> bool | None:
        """Was the promise kept?

        None while that may still change, and where nothing was promised.
        """
        if not self.final or self.actual is None or self.priced_later:
            return None
        return is_inside(self.actual, self.low, self.high)


def is_inside(actual: float, low: float | None, high: float | None) -> bool | None:
    """Return whether the interval holds the actual figure.

    Bounds are included; None without an interval.
    """
    return None if low is None or high is None else low <= actual <= high


def actual_of_attempt(attempt: Attempt, spent: Spent | None) -> dict[str, float | None]:
    """Return the figures of one attempt, once it has ended.

    `spent`: what it cost, if its GPUs had a price.
    """
    ended = attempt.ended_at
    return {
        "duration_s": duration_s([attempt], ended) if ended else None,
        "tokens_per_second": attempt.figures.tokens_per_s,
        "peak_memory_bytes": attempt.peak_memory_bytes,
        "cost": spent.amount if spent and ended else None,
    }


def promise_to_compare(job: Job) -> Option | None:
    """Return the promise to compare with; None if nothing was promised.

    It is that of the attempt that counts, else the job's. The figures of stated defaults are zeros that
    promise nothing.
    """
    counts = attempt_that_counts(list(job.attempts.all()))
    promise = counts.promised if counts else job.promised
    return None if promise is None or promise.source is Source.DEFAULT else promise


def new_prediction(job: Job, cost: JobCost | None, now: datetime) -> Option | None:
    """Return the corrected promise of the attempt that counts.

    It knows the tokens, once they were counted, and what was measured, also while the job is paused or waits
    again; it has a cost as the comparison does. None where neither has happened, and while nothing is heard
    of the job. None of an ended job, too: its actual figures are known, and what would be predicted now is
    for the form to say, which has learnt from it.
    """
    attempts = list(job.attempts.all())
    counts = attempt_that_counts(attempts)
    if counts is None or not counts.prediction or job.state in TERMINAL or silent_since(job, now):
        return None
    prediction, remaining = read_option(counts.prediction), counts.remaining
    if remaining is not None:
        heard_s = now.timestamp() if counts.ended_at is None else remaining.heard_at
        prediction = corrected(prediction, remaining, so_far_s=duration_s(attempts, now), now=heard_s)
    left = counts.left(now) if counts.ended_at is None else None
    if cost and left and remaining and remaining.pace.trained_s:
        in_all = (cost.in_all(bound or 0.0) for bound in (left.value, left.low, left.high))
        return replace(prediction, cost=Interval(*in_all))
    if prediction.cost.value or not cost:
        return prediction
    return replace(prediction, cost=_at_its_price(prediction, counts, now))


def later_than_promised(job: Job, ending: Ending | None, now: datetime) -> Interval | None:
    """Return how long a job will run, in s, if surely longer than was promised.

    The promise is that for its placement. It is surely longer where even the earliest end that is expected
    lies beyond the latest promised one.
    """
    promise = promise_to_compare(job)
    if promise is None or ending is None or promise.duration_s.high is None:
        return None
    so_far_s, left = duration_s(list(job.attempts.all()), now), ending.left
    if so_far_s + (left.low or 0.0) <= promise.duration_s.high:
        return None
    return Interval(*(so_far_s + (bound or 0.0) for bound in (left.value, left.low, left.high)))


def is_renewed(job: Job, events: Iterable[Event] | None = None) -> bool:
    """Was the job promised anew after its submission, as it was changed?

    events: those of the job, if they are at hand.
    """
    if events is None:
        return job.events.filter(type=EventType.JOB_PROMISE_CHANGED).exists()
    return any(event.type == EventType.JOB_PROMISE_CHANGED for event in events)


def promise_for_elsewhere(job: Job) -> Option | None:
    """Return the promise at submission if the job was placed elsewhere.

    Where it was placed as promised, it is None.
    """
    counts = attempt_that_counts(list(job.attempts.all()))
    return promised_elsewhere(job.promised, counts.promised) if counts else None


def promised_elsewhere(first: Option | None, placed: Option) -> Option | None:
    """Return the promise at submission if it promised another placement.

    It is None if it promised nothing.
    """
    if first is None or first.source is Source.DEFAULT or first.key == placed.key:
        return None
    return first


def comparison(job: Job, spent: Spent | None, now: datetime) -> list[PredictedAndActual]:
    """Each figure promised for the job's placement beside the actual one.

    spent: what the job cost. Cost is left out where none was promised and nothing was spent.
    """
    return _lines(job, promise_to_compare(job), spent, now)


def comparison_with_submission(job: Job, spent: Spent | None, now: datetime) -> list[PredictedAndActual]:
    """Compare with the promise at submission in the same way.

    It is empty where the job was placed as promised.
    """
    promise = promise_for_elsewhere(job)
    return _lines(job, promise, spent, now) if promise else []


def _lines(job: Job, promise: Option | None, spent: Spent | None, now: datetime) -> list[PredictedAndActual]:
    attempts = list(job.attempts.all())
    actual = _actual(attempts, spent, now)
    counts = attempt_that_counts(attempts)
    ended = counts is not None and counts.ended_at is not None
    lines = []
    for name in COMPARED:
        promised: Interval | None = getattr(promise, name, None)
        later = name == "cost" and promised is not None and not promised.value and spent is not None
        if later and promise and counts:
            same = promise.key == counts.promised.key
            promised = _at_its_price(promise, counts, now) if same else None
        bounds = {bound: getattr(promised, bound, None) for bound in ("value", "low", "high")}
        if name != "cost" or bounds["value"] or actual.get(name) is not None:
            final = job.state == JobState.SUCCEEDED if name in OF_A_WHOLE_RUN else ended
            lines.append(
                PredictedAndActual(
                    name=name, actual=actual.get(name), final=final, priced_later=later, **bounds
                )
            )
    return lines


def _at_its_price(option: Option, attempt: Attempt, now: datetime) -> Interval:
    return option.duration_s.scaled(cost(1.0, hourly_price(attempt, now)))


def _actual(attempts: Sequence[Attempt], spent: Spent | None, now: datetime) -> dict[str, float | None]:
    counts = attempt_that_counts(attempts)
    if counts is None:
        return {}
    ended = counts.ended_at is not None
    return {
        **actual_of_attempt(counts, None),
        "duration_s": duration_s(attempts, now) if ended else None,
        "cost": spent.amount if spent and ended else None,
    }
