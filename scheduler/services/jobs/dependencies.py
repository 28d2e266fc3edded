"""Jobs that come after others, or after whole arrays, and a time to begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from scheduler.core.job_terms import MOST_EARLIER
from scheduler.errors import BadParameters
from scheduler.models import Job, JobArray, JobDependency
from scheduler.selectors.dependencies import never_to_succeed
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.states import DependencyKind, JobState

AHEAD = timedelta(days=366)
GRACE = timedelta(minutes=1)  # a clock's time has no seconds, and a request takes a while


@dataclass(frozen=True)
class After:
    """A job or a whole array to come after, and what must have become of it."""

    on: Job | JobArray
    kind: DependencyKind = DependencyKind.SUCCEEDED

    @cached_property
    def never(self) -> Job | None:
        """The job that will never succeed, as it must.

        It is looked up once for all jobs of a request.
        """
        return never_to_succeed(self.on) if self.kind == DependencyKind.SUCCEEDED else None


def check_order(
    *, begin_at: datetime | None, deadline_at: datetime | None, after: Sequence[After], now: datetime
) -> None:
    """Raise BadParameters for what could never begin, or too late.

    begin_at: None once a job has it, and it has come. A new job whose time has come may start at once.
    """
    errors = {}
    if begin_at is not None and begin_at > now + AHEAD:
        errors["begin_at"] = "must lie within a year from now"
    elif begin_at is not None and deadline_at is not None and begin_at >= deadline_at:
        errors["begin_at"] = "must come before the deadline"
    if len(after) > MOST_EARLIER:
        errors["after"] = f"may name at most {MOST_EARLIER} jobs and arrays"
    elif len({one.on.pk for one in after}) < len(after):
        errors["after"] = "names a job or an array twice; name each once"
    elif gone := [(one.on, one.never) for one in after if one.never]:
        errors["after"] = _never(*gone[0])
    if errors:
        raise BadParameters(errors)


def notes_on_order(begin_at: datetime | None, now: datetime) -> tuple[str, ...]:
    """A note where the time to begin was past: the owner may have meant another."""
    if begin_at is None or begin_at >= now - GRACE:
        return ()
    at = begin_at.astimezone(UTC).isoformat(timespec="seconds")
    return (f"Its time to begin, {at}, was past when it was submitted: it may start at once.",)


def store_order(jobs: Iterable[tuple[Job, Sequence[After]]]) -> None:
    """Keep what new jobs come after."""
    JobDependency.objects.bulk_create(
        JobDependency(
            job=job, kind=one.kind, **{"on_array" if isinstance(one.on, JobArray) else "on": one.on}
        )
        for job, after in jobs
        for one in after
    )


def cancel_hopeless(dependency: JobDependency, *, now: datetime) -> None:
    """Cancel a job that waits for the success of one that will never succeed."""
    job, on = locked(dependency.job_id), dependency.earlier
    failed = never_to_succeed(on)
    if failed is None or job.state not in (JobState.QUEUED, JobState.PAUSED):
        return
    before = f"{on.pk} had succeeded," if failed == on else f"all jobs of {on.pk} had succeeded, of"
    which = "which" if failed == on else f"which {failed.pk}"
    reason = f"It was to start after {before} {which} has {_ended(failed)}."
    move_job(job=job, to=JobState.CANCELLED, now=now, reason=reason)


def _never(on: Job | JobArray, failed: Job) -> str:
    if failed == on:
        return (
            f"names {on.pk}, which has already {_ended(failed)}, so the job would never start;"
            " leave it out, or ask that it has ended"
        )
    return (
        f"names {on.pk}, of which {failed.pk} has already {_ended(failed)}, so the job would never start;"
        " leave it out, or ask that its jobs have ended"
    )


def _ended(job: Job) -> str:
    return "been cancelled" if job.state == JobState.CANCELLED else "failed"
