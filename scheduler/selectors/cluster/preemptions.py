"""Jobs that were stopped for others, and GPUs that are being freed for somebody.

The jobs of others stay nameless.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import User
from portal.events.types import MOVES
from scheduler.core.stopping import StopReason
from scheduler.models import Attempt, Job, PendingStart, Preemption
from scheduler.selectors.checkpoints import resumable
from scheduler.selectors.jobs import sees, visible_jobs
from scheduler.selectors.public_states import shown_state
from scheduler.states import QUEUED, StopFor

FIRST_BY: dict[str, str] = {
    StopReason.GUARANTEE: "whose team is guaranteed these GPUs",
    StopReason.LIMIT: "which is of a higher class and takes its place at a limit",
    StopReason.CLASS: "which goes first by its higher class",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempted:
    """A job that was stopped by the policy, or by an administrator, and goes on later.

    saving: its nodes have not confirmed the stop yet. moves: it was stopped only to go on elsewhere.
    cause: the job that got its GPUs, where the user may see it. first_by: why that goes first. why: where no
    job gets them. from_step: of the checkpoint so far; 0: none. lost_steps: those after it, which are done
    again.
    """

    at: datetime
    saving: bool
    moves: bool
    cause: Job | None
    first_by: str
    why: str
    from_step: int
    lost_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedGpus:
    """GPUs that are kept for a job until others have left them.

    `job` is None for another user's.
    """

    job: Job | None
    gpus: tuple[str, ...]
    since: datetime
    until: datetime


def preempted(job: Job, user: User) -> Preempted | None:
    """How a job came to wait, if its GPUs were taken back or it is moved; else None."""
    if shown_state(job) != QUEUED:
        return None
    last = max(job.attempts.all(), key=lambda attempt: attempt.fence, default=None)
    if last is None or (last.ended_at is None and job.stop_for != StopFor.PREEMPT):
        return None
    why = "" if last.stopped_for_id else _said(job, last)
    if not (last.stopped_for_id or why):
        return None
    checkpoint = resumable(job)
    from_step = checkpoint.step if checkpoint else 0
    saving = last.ended_at is None
    return Preempted(
        at=last.ended_at or job.state_since,
        saving=saving,
        moves=last.stopped_for_id == job.pk,
        cause=visible_jobs(user).filter(pk=last.stopped_for_id).first(),
        first_by="" if why else _first_by(last),
        why=why,
        from_step=from_step,
        lost_steps=0 if saving else max(0, job.step - from_step),
    )


def _first_by(attempt: Attempt) -> str:
    """Why the job that got an attempt's GPUs goes first, as said of that job."""
    kept = Preemption.objects.filter(job=attempt.job_id, fence=attempt.fence)
    reason = kept.values_list("reason", flat=True).first()
    return FIRST_BY.get(reason or "", "which goes first by the scheduling policy")


def _said(job: Job, attempt: Attempt) -> str:
    """Why an attempt was stopped for nobody, as was said then; empty if it was not."""
    asked = job.events.filter(fence=attempt.fence, stop_for=StopFor.PREEMPT, type__in=MOVES)
    return asked.values_list("reason", flat=True).order_by("number").last() or ""


def reservations(user: User) -> list[ReservedGpus]:
    """All pending starts, oldest first; two queries."""
    starts = PendingStart.objects.select_related("job").prefetch_related("gpus__gpu__node")
    return [
        ReservedGpus(
            job=start.job if sees(user, start.job) else None,
            gpus=tuple(f"{kept.gpu.node.name} {kept.gpu.index}" for kept in start.gpus.all()),
            since=start.made_at,
            until=start.expires_at,
        )
        for start in starts.order_by("made_at", "pk")
    ]
