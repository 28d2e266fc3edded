"""Checkpoints that nodes report to be lost or damaged."""

from __future__ import annotations

from datetime import datetime

from portal.events.types import EventType
from scheduler.models import Attempt, Checkpoint
from scheduler.services.jobs.transitions import locked, note_job


def set_aside(*, attempt: Attempt, reason: str, now: datetime) -> None:
    """Offer the checkpoint that an attempt could not go on from to no other attempt.

    The next one takes the one before. The first node of a gang says so for all.
    """
    checkpoint = attempt.resume_from
    if checkpoint is None:
        return
    if not Checkpoint.objects.filter(pk=checkpoint.pk, fault="").update(fault=reason[:500]):
        return
    note_job(
        job=locked(attempt.job_id),
        event=EventType.JOB_CHECKPOINT_LOST,
        now=now,
        reason=f"The checkpoint at step {checkpoint.step} is not used again: {reason}",
        data={"step": checkpoint.step},
    )
