"""The one place where a job changes: a guarded update and its event, in one transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from portal.accounts.models import User
from scheduler import hints
from scheduler.errors import IllegalTransition, NotFound, StaleJob
from scheduler.models import Job, JobEvent
from scheduler.states import TERMINAL, TRANSITIONS, JobState, StopFor


def locked(job_id: str) -> Job:
    """The job as it is now, held until the transaction ends. Raises NotFound."""
    job = Job.objects.select_for_update(of=("self",)).filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def record_submission(*, job: Job, now: datetime, actor: User) -> None:
    """Event number 1 of a job that was just inserted with version 1."""
    JobEvent.objects.create(
        job=job, number=1, kind="submitted", new=job.state, reason="Submitted.", actor=actor, at=now
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
    if to not in TRANSITIONS[old] and not raises_stop:
        raise IllegalTransition(f"A job that is {old} cannot become {to}.", old)
    if to in TERMINAL:
        columns.update(ended_at=now, wait_code="", wait_text="", eta_s=None)
    changed = _write(
        job,
        now,
        kind="state",
        to=to,
        stop_for=stop_for.value if stop_for else "",
        reason=reason,
        actor=actor,
        data=data,
        columns={**columns, "state_since": now},
    )
    hints.tick()
    return changed


@transaction.atomic
def note_job(
    *,
    job: Job,
    kind: str,
    now: datetime,
    reason: str = "",
    actor: User | None = None,
    data: dict[str, Any] | None = None,
    **columns: Any,
) -> Job:
    """Record something about a job that is no change of state; it counts as a version, too."""
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
    kind: str,
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
        raise StaleJob(f"Job {job.pk} is no longer {old}; read it again.")
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
