"""Jobs that come after others, and a time to begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler.errors import BadParameters
from scheduler.models import Job, JobDependency
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.states import TERMINAL, DependencyKind, JobState

MOST = 100  # jobs that one job may come after
AHEAD = timedelta(days=366)
GRACE = timedelta(minutes=1)  # a clock's time has no seconds, and a request takes a while
HOPELESS = frozenset(TERMINAL - {JobState.SUCCEEDED})


class After(NamedTuple):
    """A job to come after, and what must have become of it."""

    job: Job
    kind: DependencyKind = DependencyKind.SUCCEEDED


def check_order(
    *, begin_at: datetime | None, deadline_at: datetime | None, after: Sequence[After], now: datetime
) -> None:
    """Raise BadParameters for what could never begin, or too late.

    begin_at: None once a job has it, and it has come.
    """
    errors = {}
    if begin_at is not None and begin_at > now + AHEAD:
        errors["begin_at"] = "must lie within a year from now"
    elif begin_at is not None and begin_at < now - GRACE:
        errors["begin_at"] = "must lie in the future; leave it out for a job that may start at once"
    elif begin_at is not None and deadline_at is not None and begin_at >= deadline_at:
        errors["begin_at"] = "must come before the deadline"
    if len(after) > MOST:
        errors["after"] = f"may name at most {MOST} jobs"
    elif len({one.job.pk for one in after}) < len(after):
        errors["after"] = "names a job twice; name each once"
    elif gone := [one for one in after if one.kind == DependencyKind.SUCCEEDED and one.job.state in HOPELESS]:
        what = gone[0].job
        errors["after"] = (
            f"names {what.pk}, which has already {_ended(what)}, so the job would never start;"
            " leave it out, or ask that it has ended"
        )
    if errors:
        raise BadParameters(errors)


def store_order(jobs: Iterable[tuple[Job, Sequence[After]]]) -> None:
    """Keep what new jobs come after."""
    JobDependency.objects.bulk_create(
        JobDependency(job=job, on=one.job, kind=one.kind) for job, after in jobs for one in after
    )


def cancel_hopeless(dependency: JobDependency, *, now: datetime) -> None:
    """Cancel a job that waits for another to succeed, which it never will."""
    job, on = locked(dependency.job_id), dependency.on
    if job.state in (JobState.QUEUED, JobState.PAUSED):
        reason = f"It was to start after {on.pk} had succeeded, which has {_ended(on)}."
        move_job(job=job, to=JobState.CANCELLED, now=now, reason=reason)


def _ended(job: Job) -> str:
    return "been cancelled" if job.state == JobState.CANCELLED else "failed"
