"""The one place where a job changes.

A change is a guarded update and its event, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Case, DateTimeField, F, QuerySet, Value, When
from django.db.models.functions import Greatest

from portal.accounts.models import User
from scheduler import hints
from scheduler.errors import NotFound, StaleJob, check_transition
from scheduler.models import Job, JobEvent
from scheduler.selectors.analysis.period import Seconds
from scheduler.states import QUEUED, TERMINAL, TRANSITIONS, JobEventKind, JobState, StopFor, public_state


def locked(job_id: str) -> Job:
    """The job as it is now, held until the transaction ends. Raises NotFound."""
    job = Job.objects.select_for_update(of=("self",)).filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def record_submissions(*, jobs: Iterable[Job]) -> None:
    """Event number 1 of jobs that were just inserted with version 1."""
    JobEvent.objects.bulk_create(
        JobEvent(
            job=job,
            number=1,
            kind=JobEventKind.SUBMITTED,
            new=job.state,
            reason="Submitted.",
            actor=job.owner,
            at=job.submitted_at,
        )
        for job in jobs
    )
    hints.tick()


@transaction.atomic
def move_job(
    *,
    job: Job,
    to: JobState,
    now: datetime,
    reason: str = "",
    stop_for: StopFor | None = None,
    actor: User | None = None,
    data: dict[str, Any] | None = None,
    **columns: Any,
) -> Job:
    """Move a job to a new state and record why; `columns` change in the same update.

    Raises IllegalTransition if the table forbids it, StaleJob if the job moved meanwhile.
    """
    old = JobState(job.state)
    raises_stop = old is to is JobState.STOPPING and stop_for is StopFor.CANCEL
    if not raises_stop:
        check_transition("job", old, to, TRANSITIONS)
    if to in TERMINAL:
        columns.update(ended_at=now, wait_code="", wait_text="")
    if to not in (JobState.STARTING, JobState.RUNNING):
        columns.update(tokens_per_second=None)  # what the next attempt tells is still to come
    changed = _write(
        job,
        now,
        kind=JobEventKind.STATE,
        to=to,
        stop_for=stop_for.value if stop_for else "",
        reason=reason,
        actor=actor,
        data=data,
        columns={**columns, **_times(job, to, stop_for, now)},
    )
    hints.tick()
    return changed


@transaction.atomic
def cancel_waiting(*, jobs: QuerySet[Job], actor: User | None, now: datetime, reason: str) -> int:
    """Cancel those of the jobs that wait or are paused, all or none; return how many.

    The number of queries does not grow with theirs, but for the rows that one insertion holds.
    """
    waiting = jobs.filter(state__in=(JobState.QUEUED, JobState.PAUSED)).order_by("pk")
    held = list(waiting.select_for_update(of=("self",)).only("state", "version", "fence"))
    waited_s = Greatest(Seconds(Value(now, DateTimeField()), F("state_since")), 0.0)
    changed = Job.objects.filter(
        pk__in=[job.pk for job in held], state__in=(JobState.QUEUED, JobState.PAUSED)
    )
    here = changed.update(
        state=JobState.CANCELLED,
        version=F("version") + 1,
        waited_s=Case(When(state=JobState.QUEUED, then=F("waited_s") + waited_s), default=F("waited_s")),
        state_since=now,
        shown_since=now,
        ended_at=now,
        wait_code="",
        wait_text="",
        tokens_per_second=None,
    )
    if here != len(held):
        raise StaleJob("Some of the jobs do not wait any more; try again.")
    JobEvent.objects.bulk_create(
        JobEvent(
            job=job,
            number=job.version + 1,
            kind=JobEventKind.STATE,
            old=job.state,
            new=JobState.CANCELLED,
            fence=job.fence,
            reason=reason,
            actor=actor,
            at=now,
        )
        for job in held
    )
    if held:
        hints.tick()
    return here


def _times(job: Job, to: JobState, stop_for: StopFor | None, now: datetime) -> dict[str, Any]:
    """The columns that tell since when, and for how long people saw the job waiting."""
    before = public_state(JobState(job.state), job.stop_for)
    times: dict[str, Any] = {"state_since": now}
    if before == QUEUED:
        times["waited_s"] = job.waited_s + max(0.0, (now - job.state_since).total_seconds())
    if public_state(to, stop_for or "") != before:
        times["shown_since"] = now
    return times


@transaction.atomic
def note_job(
    *,
    job: Job,
    kind: JobEventKind,
    now: datetime,
    reason: str = "",
    actor: User | None = None,
    data: dict[str, Any] | None = None,
    **columns: Any,
) -> Job:
    """Record something about a job that is no change of state.

    It counts as a version, too.
    """
    state = JobState(job.state)
    return _write(
        job,
        now,
        kind=kind,
        to=state,
        stop_for=job.stop_for,
        reason=reason,
        actor=actor,
        data=data,
        columns=columns,
    )


def _write(
    job: Job,
    now: datetime,
    *,
    kind: JobEventKind,
    to: JobState,
    stop_for: str,
    reason: str,
    actor: User | None,
    data: dict[str, Any] | None,
    columns: dict[str, Any],
) -> Job:
    old, number = job.state, job.version + 1
    here = Job.objects.filter(pk=job.pk, version=job.version, state=old)
    if not here.update(state=to, stop_for=stop_for, version=F("version") + 1, **columns):
        raise StaleJob(f"Job {job.pk} is no longer {old}; reload it.")
    JobEvent.objects.create(
        job=job,
        number=number,
        kind=kind,
        old=old,
        new=to,
        stop_for=stop_for,
        fence=columns.get("fence", job.fence),
        reason=reason,
        data=data or {},
        actor=actor,
        at=now,
    )
    job.refresh_from_db()
    return job
