"""The one place where a job changes.

A change is a guarded update and its event, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Case, DateTimeField, F, Q, QuerySet, Value, When
from django.db.models.functions import Greatest

from portal.accounts.errors import NotAllowed
from portal.accounts.models import User
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EventType
from scheduler import hints
from scheduler.errors import NotFound, StaleJob, check_transition
from scheduler.models import Job
from scheduler.selectors.analysis.period import Seconds
from scheduler.states import (
    QUEUED,
    TERMINAL,
    TRANSITIONS,
    JobState,
    StopFor,
    public_state,
)

# What a move to a state is called; why a job waits again says the state that it leaves.
ARRIVALS = {
    JobState.ASSIGNED: EventType.JOB_ASSIGNED,
    JobState.STARTING: EventType.JOB_STARTING,
    JobState.RUNNING: EventType.JOB_STARTED,
    JobState.STOPPING: EventType.JOB_STOPPING,
    JobState.PAUSED: EventType.JOB_PAUSED,
    JobState.SUCCEEDED: EventType.JOB_SUCCEEDED,
    JobState.FAILED: EventType.JOB_FAILED,
    JobState.CANCELLED: EventType.JOB_CANCELLED,
}


OWN_ALONE = "A token of the scope submit changes its owner's jobs alone; use one of the scope write."


class Note(NamedTuple):
    """An event's reason, and its data."""

    reason: str
    data: dict[str, Any]


def locked(job_id: str) -> Job:
    """The job as it is now, held until the transaction ends. Raises NotFound."""
    job = Job.objects.select_for_update(of=("self",)).filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


def record_submissions(*, jobs: Iterable[Job]) -> None:
    """Event number 1 of jobs that were just inserted with version 1."""
    record(
        Event(
            subject=job.pk,
            type=EventType.JOB_SUBMITTED,
            number=1,
            new=job.state,
            reason="Submitted.",
            actor=job.owner,
            at=job.submitted_at,
        )
        for job in jobs
    )
    hints.tick()


def move_job(
    *,
    job: Job,
    to: JobState,
    now: datetime,
    reason: str = "",
    stop_for: StopFor | None = None,
    actor: User | None = None,
    data: dict[str, Any] | None = None,
    reload: bool = True,
    **columns: Any,
) -> Job:
    """Move a job to a new state and record why; `columns` change in the same update.

    reload: read the job again; for those who go on with it.
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
        event=_move(job, to),
        to=to,
        stop_for=stop_for.value if stop_for else "",
        reason=reason,
        actor=actor,
        data=data,
        columns={**columns, **_times(job, to, stop_for, now)},
        reload=reload,
    )
    hints.tick()
    return changed


@transaction.atomic
def cancel_waiting(*, jobs: QuerySet[Job], actor: User | None, now: datetime, reason: str) -> int:
    """Cancel those of the jobs that wait or are paused, all or none; return how many.

    The number of queries does not grow with theirs, but for the rows that one insertion holds.
    """
    waiting = jobs.filter(state__in=(JobState.QUEUED, JobState.PAUSED)).order_by("pk")
    if actor is not None and actor.changes_own_alone and waiting.exclude(owner=actor).exists():
        raise NotAllowed(OWN_ALONE)
    held = list(waiting.select_for_update(of=("self",)).only("state", "version", "fence"))
    changed = Job.objects.filter(
        pk__in=[job.pk for job in held], state__in=(JobState.QUEUED, JobState.PAUSED)
    )
    here = changed.update(
        state=JobState.CANCELLED,
        version=F("version") + 1,
        waited_s=_waited_s(Q(state=JobState.QUEUED), now),
        state_since=now,
        shown_since=now,
        ended_at=now,
        wait_code="",
        wait_text="",
        tokens_per_second=None,
    )
    if here != len(held):
        raise StaleJob("Some of the jobs do not wait any more; try again.")
    record(
        Event(
            subject=job.pk,
            type=EventType.JOB_CANCELLED,
            number=job.version + 1,
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


@transaction.atomic(savepoint=False)
def move_all(
    *, notes: Mapping[Job, Note], to: JobState, now: datetime, stop_for: StopFor | None = None, **columns: Any
) -> None:
    """`move_job` of held jobs to one state, in as many queries as of one.

    A move to `assigned` raises the fence. Raises IllegalTransition, and StaleJob if one of them moved
    meanwhile: the transaction is over then.
    """
    if not notes:
        return
    for job in notes:
        check_transition("job", JobState(job.state), to, TRANSITIONS)
    before = {job.pk: public_state(JobState(job.state), job.stop_for) for job in notes}
    queued = [pk for pk, state in before.items() if state == QUEUED]
    shown = [pk for pk, state in before.items() if state != public_state(to, stop_for or "")]
    begins = int(to is JobState.ASSIGNED)
    here = _unmoved(notes).update(
        state=to,
        stop_for=stop_for or "",
        version=F("version") + 1,
        fence=F("fence") + begins,
        waited_s=_waited_s(Q(pk__in=queued), now),
        shown_since=Case(When(pk__in=shown, then=Value(now, DateTimeField())), default=F("shown_since")),
        state_since=now,
        tokens_per_second=None,
        **columns,
    )
    if here != len(notes):
        raise StaleJob("Some of the jobs have moved on.")
    events = []
    for job, note in notes.items():
        event = _move(job, to)
        old, job.state, job.stop_for = job.state, to, stop_for or ""
        job.version, job.fence = job.version + 1, job.fence + begins
        events.append(
            Event(
                subject=job.pk, type=event, number=job.version, old=old, new=to, stop_for=job.stop_for,
                fence=job.fence, reason=note.reason, data=note.data, at=now,
            )
        )  # fmt: skip
    record(events)
    hints.tick()


@transaction.atomic(savepoint=False)
def note_all(*, notes: Mapping[Job, Note], event: EventType, now: datetime, **columns: Any) -> None:
    """`note_job` of held jobs, in as many queries as of one. Raises StaleJob."""
    if not notes:
        return
    if _unmoved(notes).update(version=F("version") + 1, **columns) != len(notes):
        raise StaleJob("Some of the jobs have moved on.")
    record(
        Event(
            subject=job.pk, type=event, number=job.version + 1, old=job.state, new=job.state,
            stop_for=job.stop_for, fence=job.fence, reason=note.reason, data=note.data, at=now,
        )
        for job, note in notes.items()
    )  # fmt: skip


def _move(job: Job, to: JobState) -> EventType:
    """The event of a job that moves on from the state that its row has."""
    if to is not JobState.QUEUED:
        return ARRIVALS[to]
    if job.state == JobState.PAUSED:
        return EventType.JOB_RESUMED
    taken = job.stop_for in (StopFor.PREEMPT, StopFor.DRAIN)
    return EventType.JOB_PREEMPTED if taken else EventType.JOB_RETRYING


def _unmoved(jobs: Iterable[Job]) -> QuerySet[Job]:
    """Those of the jobs that are still as they were read."""
    held = [Q(pk=job.pk, version=job.version, state=job.state) for job in jobs]
    return Job.objects.filter(reduce(or_, held))


def _waited_s(shown: Q, now: datetime) -> Case:
    """The seconds that people saw a job waiting: also until now where `shown` holds."""
    since_s = Greatest(Seconds(Value(now, DateTimeField()), F("state_since")), 0.0)
    return Case(When(shown, then=F("waited_s") + since_s), default=F("waited_s"))


def _times(job: Job, to: JobState, stop_for: StopFor | None, now: datetime) -> dict[str, Any]:
    """The columns that tell since when, and for how long people saw the job waiting."""
    before = public_state(JobState(job.state), job.stop_for)
    times: dict[str, Any] = {"state_since": now}
    if before == QUEUED:
        times["waited_s"] = job.waited_s + max(0.0, (now - job.state_since).total_seconds())
    if public_state(to, stop_for or "") != before:
        times["shown_since"] = now
    return times


def note_job(
    *,
    job: Job,
    event: EventType,
    now: datetime,
    reason: str = "",
    actor: User | None = None,
    data: dict[str, Any] | None = None,
    reload: bool = True,
    **columns: Any,
) -> Job:
    """Record something about a job that is no change of state.

    It counts as a version, too. reload: as of `move_job`.
    """
    state = JobState(job.state)
    return _write(
        job,
        now,
        event=event,
        to=state,
        stop_for=job.stop_for,
        reason=reason,
        actor=actor,
        data=data,
        columns=columns,
        reload=reload,
    )


def _write(
    job: Job,
    now: datetime,
    *,
    event: EventType,
    to: JobState,
    stop_for: str,
    reason: str,
    actor: User | None,
    data: dict[str, Any] | None,
    columns: dict[str, Any],
    reload: bool,
) -> Job:
    """The update and its event are one transaction, or a part of the caller's."""
    if actor is not None and actor.changes_own_alone and job.owner_id != actor.pk:
        raise NotAllowed(OWN_ALONE)
    old, number = job.state, job.version + 1
    with transaction.atomic(savepoint=False):
        here = Job.objects.filter(pk=job.pk, version=job.version, state=old).update(
            state=to, stop_for=stop_for, version=F("version") + 1, **columns
        )
        if here:
            written = Event(
                subject=job.pk,
                type=event,
                number=number,
                old=old,
                new=to,
                stop_for=stop_for,
                fence=columns.get("fence", job.fence),
                reason=reason,
                data=data or {},
                actor=actor,
                at=now,
            )
            record([written])
            if reload:
                job.refresh_from_db()
    if not here:  # outside of the transaction, of which the caller may go on with the rest
        raise StaleJob(f"Job {job.pk} is no longer {old}; reload it.")
    return job
