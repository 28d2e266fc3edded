"""Priority classes, and holding a job or moving it to the front of the queue."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from portal.events.types import EventType
from scheduler import hints
from scheduler.errors import BeyondRight, IllegalTransition
from scheduler.models import Job, PendingStart
from scheduler.selectors.quotas import highest_class
from scheduler.services.jobs.hand_over import let_lapse
from scheduler.services.jobs.transitions import locked, note_job
from scheduler.states import TERMINAL, JobState, public_state


def check_class(priority: int, *, actor: User) -> None:
    """Raise BeyondRight for a class above the highest that the person may give."""
    highest = highest_class(actor)
    if priority > highest:
        raise BeyondRight(
            {"priority": f"may be {highest.word} at most; an administrator can allow you a higher class"}
        )


@transaction.atomic
def hold_job(*, job: Job, actor: User, now: datetime, note: str = "") -> Job:
    """Keep a job from starting until it is released; one that runs goes on.

    Raises NotAllowed, IllegalTransition.
    """
    return _hold(job, actor, now, held_at=now, held_note=note)


@transaction.atomic
def release_job(*, job: Job, actor: User, now: datetime) -> Job:
    """Let a job start that was held. Raises NotAllowed, IllegalTransition."""
    return _hold(job, actor, now, held_at=None, held_note="")


def _hold(job: Job, actor: User, now: datetime, *, held_at: datetime | None, held_note: str) -> Job:
    require_admin(actor)
    job = locked(job.pk)
    if job.state in TERMINAL:
        raise IllegalTransition(f"The job is {job.state} and cannot be changed.", job.state)
    if (job.held_at is None) == (held_at is None) and job.held_note == held_note:
        return job
    event = EventType.JOB_HELD if held_at else EventType.JOB_RELEASED
    job = note_job(
        job=job, event=event, now=now, reason=held_note, actor=actor, held_at=held_at, held_note=held_note
    )
    audit(action=f"job {event.words}", actor=actor, target=job.pk, data={"note": held_note}, now=now)
    if held_at and job.state == JobState.QUEUED:
        for start in PendingStart.objects.filter(job=job):
            let_lapse(start=start, reason="An administrator holds the job.", now=now)
            job.refresh_from_db()
    hints.tick()
    return job


@transaction.atomic
def move_to_front(*, job: Job, actor: User, now: datetime, note: str = "") -> Job:
    """Let a job that waits go before all others of its class, whatever the policy.

    Of several the last one to be moved goes first. Raises NotAllowed, IllegalTransition.
    """
    return _place(job, actor, now, front_at=now, note=note)


@transaction.atomic
def move_back(*, job: Job, actor: User, now: datetime) -> Job:
    """Give a job that was moved to the front its place by the policy again.

    Raises NotAllowed, IllegalTransition.
    """
    return _place(job, actor, now, front_at=None, note="")


def _place(job: Job, actor: User, now: datetime, *, front_at: datetime | None, note: str) -> Job:
    require_admin(actor)
    job = locked(job.pk)
    if job.state not in (JobState.QUEUED, JobState.PAUSED) and front_at:
        state = public_state(JobState(job.state), job.stop_for)
        now_is = "has just been given GPUs" if state == "queued" else f"is {state}"
        raise IllegalTransition(f"The job {now_is}; only a job that waits can be moved to the front.", state)
    if front_at is None and job.front_at is None:
        return job
    event = EventType.JOB_MOVED_TO_FRONT if front_at else EventType.JOB_MOVED_BACK
    job = note_job(job=job, event=event, now=now, reason=note, actor=actor, front_at=front_at)
    audit(action=f"job {event.words}", actor=actor, target=job.pk, data={"note": note}, now=now)
    hints.tick()
    return job
