"""When a waiting job starts, as it was foretold, and how such forecasts came true."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from knowledge.core.domain.types import Interval
from scheduler.models import Job, StartForecast
from scheduler.states import JobState

STALE = timedelta(minutes=3)  # the queue is played ahead at least once a minute
JUDGED = 500  # the last forecasts that came true or not


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
    """Of a job that waits; None where nothing is foretold.

    A start that was foretold for a time that has passed is told as now. The job was read by `with_forecasts`.
    """
    if job.state != JobState.QUEUED:
        return None
    row: StartForecast | None = getattr(job, "foretold", None)  # Django leaves it out where there is none
    if row is None or row.made_at < job.state_since:
        return None
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


def judged_forecasts(policy: str) -> Iterable[tuple[Interval, float]]:
    """First forecasts under a policy and the actual starts, newest first.

    In s after they were made.
    """
    rows = StartForecast.objects.filter(first=True, policy=policy, job__first_started_at__isnull=False)
    for row in rows.select_related("job").order_by("-made_at")[:JUDGED]:
        if row.job.first_started_at is None or row.job.first_started_at < row.made_at:
            continue
        made = row.made_at.timestamp()
        high = row.start_high.timestamp() - made if row.start_high else None
        interval = Interval(row.start_at.timestamp() - made, row.start_low.timestamp() - made, high)
        yield interval, row.job.first_started_at.timestamp() - made
