"""Jobs that held or awaited GPUs across the edges of a range of the past.

They are played beside the jobs of the range, whose places they took, and do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Prefetch, Q

from scheduler.models import Attempt, Job
from scheduler.simulator.inputs.trace import TraceJob


def edge_jobs(begin: datetime, until: datetime, seen_at: datetime) -> list[Job]:
    """The jobs that had not ended when the range began, or when it was looked at.

    They are those that ran, in the order of submission, with their attempts and what they came after. An
    attempt that goes on has the end that is forecast for it; nothing of that is saved.
    """
    open_then = Q(ended_at=None) | Q(ended_at__gt=seen_at)
    before = Q(submitted_at__lt=begin) & (open_then | Q(ended_at__gt=begin))
    still = Q(submitted_at__gte=begin, submitted_at__lt=until) & open_then
    rows = Job.objects.filter(before | still, attempts__running_at__lt=seen_at).distinct()
    attempts = Prefetch("attempts", Attempt.objects.filter(running_at__lt=seen_at).order_by("fence"))
    jobs = list(rows.order_by("submitted_at", "id").prefetch_related(attempts, "dependencies", "array"))
    for job in jobs:
        for attempt in job.attempts.all():
            if attempt.ended_at is None:
                attempt.ended_at = _expected_end(job, attempt, seen_at)
    return jobs


def _expected_end(job: Job, attempt: Attempt, seen_at: datetime) -> datetime:
    left = attempt.remaining.left(seen_at.timestamp()) if attempt.remaining else None
    done = job.step / job.total_steps if job.total_steps else 0.0
    left_s = left.value if left else max(0.0, 1 - done) * attempt.promised.duration_s.value
    return seen_at + timedelta(seconds=left_s)


def from_its_start(
    played: TraceJob, attempts: Sequence[Attempt], origin: datetime, begin: datetime
) -> TraceJob:
    """A job from before the range, which starts no sooner than it really did.

    The jobs that it had to wait for before the range are not played.
    """
    first = min(attempt.created_at for attempt in attempts)
    starts_s = (min(first, begin) - origin).total_seconds()
    if played.submit_s >= (begin - origin).total_seconds():
        return played
    return replace(played, begin_s=max(played.begin_s or 0.0, starts_s))
