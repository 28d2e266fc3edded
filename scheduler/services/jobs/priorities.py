"""Priority classes, and changing or holding a job that was submitted already."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.errors import NotAllowed
from portal.accounts.models import User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from portal.accounts.teams import is_lead
from scheduler import hints
from scheduler.errors import BadParameters, IllegalTransition
from scheduler.models import Job
from scheduler.selectors.quotas import highest_class
from scheduler.services.jobs.closeness import Closely, check_closeness
from scheduler.services.jobs.transitions import locked, note_job
from scheduler.states import TERMINAL, JobState, PriorityClass, public_state


def check_class(priority: int, *, actor: User) -> None:
    """Raise BadParameters for a class above the highest that the person may give."""
    highest = highest_class(actor)
    if priority > highest:
        raise BadParameters(
            {"priority": f"may be {highest.word} at most; an administrator can allow you a higher class"}
        )


def may_change(actor: User, job: Job) -> bool:
    """Its owner, leads of its team and administrators may change a job."""
    return actor.is_admin or job.owner_id == actor.pk or bool(job.team and is_lead(actor, job.team))


@transaction.atomic
def change_job(
    *,
    job: Job,
    actor: User,
    now: datetime,
    seen: str | None = None,
    priority: int | None = None,
    preemptible: bool | None = None,
    closeness: Closely | None = None,
) -> Job:
    """Change the class of a job, whether it may be stopped, or how close its GPUs lie.

    seen: the state in which the actor saw it, as shown to people; None does not ask. What stays as it is
    leaves no event; how close GPUs lie holds from the next start on. Raises NotAllowed, BadParameters,
    IllegalTransition.
    """
    if not may_change(actor, job):
        raise NotAllowed("Only its owner, a lead of its team and administrators may change a job.")
    job = locked(job.pk)
    state = public_state(JobState(job.state), job.stop_for)
    if job.state in TERMINAL or seen not in (None, state):
        remedy = "and cannot be changed" if job.state in TERMINAL else "now; look again, and then change it"
        raise IllegalTransition(f"The job is {state} {remedy}.", state)
    changed: dict[str, Any] = {}
    if priority is not None and priority != job.priority:
        check_class(priority, actor=actor)
        changed["priority"] = priority
    if preemptible is not None and preemptible != job.preemptible:
        changed["preemptible"] = preemptible
    if closeness is not None and closeness != (job.topology, job.topology_level):
        check_closeness(*closeness, job.fixed)
        changed |= {"topology": closeness.topology, "topology_level": closeness.level}
    if not changed:
        return job
    data = {name: [getattr(job, name), value] for name, value in changed.items()}
    job = note_job(
        job=job, kind="changed", now=now, reason=_sentences(changed), actor=actor, data=data, **changed
    )
    hints.tick()
    return job


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
    kind = "held" if held_at else "released"
    job = note_job(
        job=job, kind=kind, now=now, reason=held_note, actor=actor, held_at=held_at, held_note=held_note
    )
    audit(action=f"job {kind}", actor=actor, target=job.pk, data={"note": held_note}, now=now)
    hints.tick()
    return job


def _sentences(changed: dict[str, Any]) -> str:
    sentences = []
    if "priority" in changed:
        sentences.append(f"Its class is {PriorityClass(changed['priority']).word} now.")
    if "topology" in changed:
        sentences.append("How close its GPUs shall lie was changed, for its next start.")
    if "preemptible" in changed:
        can = "may" if changed["preemptible"] else "may not"
        sentences.append(f"It {can} be stopped for other jobs now.")
    return " ".join(sentences)
