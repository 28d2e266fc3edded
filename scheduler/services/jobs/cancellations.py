"""Cancelling many jobs in one request."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet

from portal.accounts.models import User
from scheduler.errors import IllegalTransition
from scheduler.models import Job
from scheduler.services.jobs.transitions import cancel_waiting
from scheduler.services.jobs.verbs import CANCELLED, cancel_job
from scheduler.states import TERMINAL, StopFor


class Cancelled(NamedTuple):
    """How many jobs are cancelled for good, or as soon as their nodes have stopped."""

    waiting: int
    stopping: int


def cancel_jobs(*, jobs: QuerySet[Job], actor: User, now: datetime, reason: str = "") -> Cancelled:
    """Cancel those of the jobs that have not ended.

    Jobs that wait go together and first, so that none starts meanwhile.
    """
    stopping = 0
    waiting = cancel_waiting(jobs=jobs, actor=actor, now=now, reason=reason or CANCELLED)
    for job in jobs.exclude(state__in=TERMINAL).exclude(stop_for=StopFor.CANCEL):
        try:
            ended = cancel_job(job=job, actor=actor, now=now, reason=reason).state in TERMINAL
        except IllegalTransition:
            continue  # it has just ended
        waiting, stopping = waiting + ended, stopping + (not ended)
    return Cancelled(waiting, stopping)
