"""Files of jobs that are removed: needless checkpoints, and outputs on demand."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from portal.accounts.errors import NotAllowed
from portal.accounts.models import User
from portal.events.types import EventType
from scheduler.errors import Conflict
from scheduler.models import Artifact, Checkpoint, Job
from scheduler.selectors.jobs import may_change
from scheduler.services.files.storage import artifact_path
from scheduler.services.jobs.transitions import locked, note_job
from scheduler.states import TERMINAL, JobState

log = logging.getLogger(__name__)
OF_A_LIVE_JOB = 2  # a damaged one leaves the one before
SUPERSEDED = "It was removed: later ones, or the job's end, made it needless."
Part = tuple[str, int]  # a claim and a step


def forget_checkpoints(*, jobs: Iterable[str], now: datetime) -> int:
    """Remove the files of checkpoints that nothing goes on from, and return how many.

    Kept are the two furthest of a job that has not ended, the furthest of one that failed for
    CHECKPOINT_KEEP_DAYS, and what a live attempt starts from or has under way. Rows of files outlive the
    files, so that what a killed process left over is removed the next time.
    """
    return sum(_forget(job_id, now) for job_id in jobs)


def jobs_with_checkpoints() -> list[str]:
    """The jobs of which the portal has files of checkpoints."""
    parts = Artifact.objects.filter(checkpoint_step__isnull=False).order_by()
    return list(parts.values_list("job_id", flat=True).distinct())


def _forget(job_id: str, now: datetime) -> int:
    with transaction.atomic():
        kept = _kept(locked(job_id), now)
        parts = Artifact.objects.filter(job_id=job_id, checkpoint_step__isnull=False)
        needless = [part for part in parts if (str(part.claim_id), part.checkpoint_step) not in kept]
        for claim, step in {(part.claim_id, part.checkpoint_step or 0) for part in needless}:
            here = Checkpoint.objects.filter(claim_id=claim, step=step, node__isnull=True, fault="")
            here.update(fault=SUPERSEDED)
    return _remove(needless)  # from here on no attempt is told to go on from them


def delete_outputs(*, job: Job, actor: User, now: datetime, path: str = "") -> int:
    """Remove all files of an ended job, or those at one path; return how many.

    Its history and log stay. For its owner, leads of its team and administrators. Raises NotAllowed, and
    Conflict while the job lives, and where it has none.
    """
    if not may_change(actor, job):
        raise NotAllowed("Only its owner, a lead of its team and administrators may delete a job's files.")
    with transaction.atomic():
        job = locked(job.pk)
        left = Artifact.objects.filter(job=job)
        files = list(left.filter(path=path) if path else left)
        if job.state not in TERMINAL:
            raise Conflict("The job has not ended; cancel it or wait for its end first.")
        if not files:
            raise Conflict("The job has no files at the portal.")
        if not path:
            of_checkpoints = Checkpoint.objects.filter(job=job, node__isnull=True, fault="")
            of_checkpoints.update(fault=SUPERSEDED)
        reason = "The files that it left were deleted."
        data = {"files": len(files), "bytes": sum(file.bytes for file in files)}
        note_job(job=job, event=EventType.JOB_FILES_DELETED, now=now, reason=reason, actor=actor, data=data)
    return _remove(files)


def _remove(files: Collection[Artifact]) -> int:
    """Remove files, then their rows.

    So the next call finds what a killed process left.
    """
    for file in files:
        path = artifact_path(file.job_id, str(file.claim_id), file.path)
        path.unlink(missing_ok=True)
        with suppress(OSError):  # others lie beside it still
            path.parent.rmdir()
    return Artifact.objects.filter(pk__in=[file.pk for file in files]).delete()[0]


def _kept(job: Job, now: datetime) -> set[Part]:
    usable = Checkpoint.objects.filter(job=job, node__isnull=True, fault="").order_by("-step", "-pk")
    kept = {(str(one.claim_id), one.step) for one in usable[: _number(job, now)]}
    live = job.attempts.filter(ended_at__isnull=True).select_related("resume_from").first()
    if live is None:
        return kept
    if live.resume_from:
        kept.add((str(live.resume_from.claim_id), live.resume_from.step))
    uploaded = Artifact.objects.filter(claim__attempt=live, checkpoint_step__isnull=False).order_by()
    registered = set(Checkpoint.objects.filter(attempt=live).values_list("claim_id", "step"))
    under_way = set(uploaded.values_list("claim_id", "checkpoint_step")) - registered
    return kept | {(str(claim), step or 0) for claim, step in under_way}


def _number(job: Job, now: datetime) -> int:
    """How many complete ones are kept."""
    if job.state not in TERMINAL:
        return OF_A_LIVE_JOB
    lately = job.ended_at is not None and job.ended_at > now - timedelta(days=settings.CHECKPOINT_KEEP_DAYS)
    return int(job.state == JobState.FAILED and lately)
