"""Actions -> rows: each in a transaction of its own, each checked against the present rows."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from scheduler.core.types import Plan, Start, Wait
from scheduler.errors import CannotPlace, StaleJob
from scheduler.loop import leadership as epochs
from scheduler.loop.budget import Budget
from scheduler.models import Epoch, Job
from scheduler.services.jobs.attempts import start_attempt
from scheduler.states import JobState, WaitState

MOST = 500  # characters that a job keeps of why it waits
log = logging.getLogger(__name__)


def apply(epoch: Epoch, plan: Plan, now: datetime) -> int:
    """Carry out a plan as far as a tick may go; returns the number of jobs started. Raises SchedulerReplaced.

    Each start is a hint for the next tick, which decides anew about what is left.
    """
    started, budget = 0, Budget()
    for action in plan.actions:
        if isinstance(action, Start):
            if not budget.allows():
                break
            if _start(epoch, action, now):
                started += 1
                budget.spend()
    _explain(epoch, [action for action in plan.actions if isinstance(action, Wait)])
    return started


def _start(epoch: Epoch, action: Start, now: datetime) -> bool:
    with epochs.row(epoch, job=action.job):
        try:
            start_attempt(job_id=action.job, option=action.option, gpus=action.gpus, now=now)
        except (CannotPlace, StaleJob) as changed:
            # The rows moved on since the snapshot; the next tick decides anew.
            log.info("start not applied", extra={"job": action.job, "reason": str(changed)})
        else:
            return True
    return False


def _explain(epoch: Epoch, waits: list[Wait]) -> None:
    """Write why each waiting job waits, where that changed."""
    reasons = {wait.job: wait for wait in waits}
    with transaction.atomic():
        epochs.hold(epoch)
        changed = []
        for job in Job.objects.filter(state=JobState.QUEUED).only("id", "wait_code", "wait_text"):
            wait = reasons.get(job.pk)
            if wait is None or wait.code is WaitState.OPTIONS:
                continue  # written where it begins and cleared where it ends, maybe since the snapshot
            said = wait.code, wait.reason[:MOST]
            if said != (job.wait_code, job.wait_text):
                job.wait_code, job.wait_text = said
                changed.append(job)
        # Only those that still wait: one that was cancelled meanwhile keeps no reason.
        Job.objects.filter(state=JobState.QUEUED).bulk_update(
            changed, ["wait_code", "wait_text"], batch_size=500
        )
