"""Forecasts of the starts of waiting jobs, and how they came true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from knowledge.core.domain.types import Interval
from portal.events.models import Event
from portal.events.types import BY_HAND, EventType
from scheduler.models import Job, StartForecast
from scheduler.selectors.figures.promise import is_inside
from scheduler.states import JobState

STALE = timedelta(minutes=3)  # the queue is played ahead at least once a minute
JUDGED = 2000  # the last forecasts that came true or not
PROMISED = ("made_at", "start_at", "start_low", "start_high")


class Expected(NamedTuple):
    """When a job is expected to start and end; None: later than was played ahead."""

    made_at: datetime
    stale: bool
    start_at: datetime
    start_low: datetime
    start_high: datetime | None
    end_at: datetime | None
    end_low: datetime | None
    end_high: datetime | None


def newest_forecast(job: Job, now: datetime) -> Expected | None:
    """The newest forecast of a job that waits; None where there is none.

    The job was read by `with_forecasts`.
    """
    if job.state != JobState.QUEUED:
        return None
    row: StartForecast | None = getattr(job, "shown_forecast", None)  # Django leaves out a missing one
    if row is None or row.made_at < job.state_since:
        return None
    return expected(row, now)


def expected(row: StartForecast, now: datetime) -> Expected:
    """A forecast as it is told now.

    A start that was forecast for a time that has passed is shown as now.
    """
    return Expected(
        made_at=row.made_at,
        stale=row.made_at + STALE < now,
        start_at=max(row.start_at, now),
        start_low=max(row.start_low, now),
        start_high=row.start_high and max(row.start_high, now),
        end_at=row.end_at,
        end_low=row.end_low,
        end_high=row.end_high,
    )


@dataclass(frozen=True, slots=True)
class StartPromise:
    """The first forecast of a job after it was queued, and when it started.

    by_hand: somebody changed, held, moved or paused the job in between, which no forecast knows of.
    """

    made_at: datetime
    start_at: datetime
    start_low: datetime
    start_high: datetime | None
    actual: datetime | None
    by_hand: bool = False

    @property
    def interval(self) -> Interval:
        """The interval of the start, in s after the forecast was made."""
        high = None if self.start_high is None else self._after_s(self.start_high)
        return Interval(self._after_s(self.start_at), self._after_s(self.start_low), high)

    @property
    def waited_s(self) -> float | None:
        """The seconds from the forecast to the start; None until then."""
        return None if self.actual is None else self._after_s(self.actual)

    @property
    def inside(self) -> bool | None:
        """Whether it was kept.

        None until the start, without an upper bound, and if somebody had a hand in it.
        """
        promised = self.interval
        return (
            None
            if self.waited_s is None or self.by_hand
            else is_inside(self.waited_s, promised.low, promised.high)
        )

    def _after_s(self, moment: datetime) -> float:
        return (moment - self.made_at).total_seconds()


def start_promise(job: Job) -> StartPromise | None:
    """The job's first forecast; None if it started before there was one."""
    rows = StartForecast.objects.filter(job=job, first=True).annotate(by_hand=_by_hand())
    found = rows.values_list(*PROMISED, "job__first_started_at", "by_hand").first()
    return StartPromise(*found) if found else None


def judged_starts() -> QuerySet[StartForecast]:
    """First forecasts of jobs that have started.

    Left out are jobs that somebody changed, held or paused in between: no forecast knows of that.
    """
    begun = StartForecast.objects.filter(first=True, job__first_started_at__gte=F("made_at"))
    return begun.exclude(_by_hand())


def _by_hand() -> Exists:
    """Whether somebody changed, held, moved or paused the job before its start."""
    between = Q(at__gt=OuterRef("made_at"), at__lt=OuterRef("job__first_started_at"))
    return Exists(
        Event.objects.filter(between, type__in=BY_HAND | {EventType.JOB_PAUSED}, subject=OuterRef("job"))
    )


def as_promises(rows: QuerySet[StartForecast]) -> list[StartPromise]:
    """One query."""
    return [StartPromise(*row) for row in rows.values_list(*PROMISED, "job__first_started_at")]


def judged_forecasts(policy: str) -> list[tuple[Interval, float]]:
    """Judged starts under a policy, newest first, in s after their forecasts.

    No two of them waited at the same time: jobs that do often wait for the same one, and tell no more than
    one of them.
    """
    rows = judged_starts().filter(policy=policy).order_by("-made_at")[:JUDGED]
    found: list[tuple[Interval, float]] = []
    before: datetime | None = None
    for one in as_promises(rows):
        if one.actual is not None and (before is None or one.actual <= before):
            found.append((one.interval, one.waited_s or 0.0))
            before = one.made_at
    return found
