"""Stops by policies and administrators are counted, with what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import F, Max

from scheduler.core.stopping import StopReason
from scheduler.models import Attempt, Checkpoint, Job, PendingStart, Preemption
from scheduler.selectors.figures.times import lasted_s
from scheduler.selectors.policy import current_policy
from scheduler.states import WaitState
from trainer.protocol import Outcome

GPUS_ARE_KEPT: dict[str, Any] = {
    "wait_code": WaitState.PENDING,
    "wait_text": "GPUs are kept for it; it starts when the jobs on them have saved their work and left.",
}


def why_it_waits(job: Job) -> dict[str, Any]:
    """Return the columns of a job that has just left its GPUs.

    None if the next tick has to say it.
    """
    return GPUS_ARE_KEPT if PendingStart.objects.filter(job=job).exists() else {}


def stop_data(reason: StopReason) -> dict[str, Any]:
    """The data of the event of a job that is asked to stop."""
    return {"stop_reason": reason.value}


def note_preemptions(*, reasons: Mapping[Job, StopReason], policy: str = "", now: datetime) -> None:
    """Keep that jobs are asked to stop.

    policy: the one in force, where the caller knows it. One query then, else two.
    """
    if not reasons:
        return
    policy = policy or current_policy()
    Preemption.objects.bulk_create(
        Preemption(job=job, fence=job.fence, policy=policy, reason=reason, at=now)
        for job, reason in reasons.items()
    )


def note_lost_work(*, attempt: Attempt, gpus: int, outcome: Outcome, now: datetime) -> None:
    """Keep the GPU-seconds after the last checkpoint of an attempt that was stopped.

    They are done again; of one that succeeded all the same, nothing is.
    """
    lost_s = 0.0
    if outcome is not Outcome.SUCCEEDED:
        saved_at = Checkpoint.objects.filter(attempt=attempt).aggregate(at=Max("at"))["at"]
        lost_s = lasted_s(saved_at or attempt.created_at, now)
    stop = Preemption.objects.filter(job=attempt.job_id, fence=attempt.fence)
    stop.update(gpus=gpus, lost_gpu_s=gpus * lost_s)


def note_start_up(*, attempt: Attempt, now: datetime) -> None:
    """Keep what it cost to start again, if the attempt before was stopped."""
    start_up_s = lasted_s(attempt.created_at, now)
    stop = Preemption.objects.filter(job=attempt.job_id, fence=attempt.fence - 1)
    stop.update(lost_gpu_s=F("lost_gpu_s") + F("gpus") * start_up_s)
