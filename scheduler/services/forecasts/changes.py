"""Asking what would let a waiting job start sooner.

A worker of the queue `predict` answers (`scheduler.loop.predict.job_changes`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler import hints
from scheduler.models import ChangeSearch, Job
from scheduler.selectors.cluster.job_changes import is_fresh
from scheduler.states import JobState

NOTED_EVERY = timedelta(seconds=10)


def ask_changes(*, job: Job, now: datetime) -> None:
    """Note that somebody looks at the job; a worker answers if the last answer is old."""
    if job.state != JobState.QUEUED:
        return
    row, made = ChangeSearch.objects.get_or_create(job=job, defaults={"asked_at": now})
    if not made and now - row.asked_at > NOTED_EVERY:
        ChangeSearch.objects.filter(job=job).update(asked_at=now)
    row.job = job
    if not is_fresh(row, now):
        hints.find_changes()
