"""Attempts: made from a decision, and ended with everything that follows."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from knowledge.core.domain.option_json import read_option
from scheduler import hints
from scheduler.core.market.types import NodeTerms
from scheduler.models import Allocation, Attempt, Claim, Job
from scheduler.services.fair_shares import charge
from scheduler.services.jobs.executions import record
from scheduler.services.jobs.preemptions import note_lost_work, why_it_waits
from scheduler.services.jobs.terms.run_limits import fail_at_limit, is_used_up
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.states import (
    BUDGETS,
    FAILURE_CLASS,
    STOPPED_TO,
    UNLIMITED,
    Budget,
    JobState,
    Outcome,
    StopFor,
    WaitState,
)
from trainer.protocol import Phase

log = logging.getLogger(__name__)


@transaction.atomic
def end_attempt(*, attempt: Attempt, outcome: Outcome, reason: str, now: datetime) -> Job | None:
    """End a live attempt and move its job by the state table.

    The attempt's GPUs are released and its measurements recorded. None if it had ended already.
    """
    job = locked(attempt.job_id)
    ended = Attempt.objects.filter(pk=attempt.pk, ended_at__isnull=True)
    if not ended.update(ended_at=now, outcome=outcome, reason=reason):
        return None
    attempt.refresh_from_db()
    attempt.claims.filter(outcome="").update(outcome=outcome, phase=Phase.ENDED)
    release(job=job, attempt=attempt, claims=attempt.claims.all(), now=now)
    _correct_queue(attempt)
    if job.preempting:
        gpus = Allocation.objects.filter(claim__attempt=attempt).count()
        note_lost_work(attempt=attempt, gpus=gpus, outcome=outcome, now=now)
    record(attempt=attempt, job=job, now=now)
    log.info("attempt ended", extra={"job": job.pk, "attempt": str(attempt.pk), "outcome": outcome.value})
    return _follow(job, attempt, outcome, reason, now)


def _correct_queue(attempt: Attempt) -> None:
    """Take the trainer's word for how long it ran after it left an engine's queue.

    An agent that was away saw it begin late, or not at all.
    """
    ran_s, ended_at = attempt.figures.runtime_s, attempt.ended_at
    if attempt.queued_s == 0.0 or ran_s is None or ended_at is None:
        return
    longest_s = max(0.0, (ended_at - attempt.created_at).total_seconds() - ran_s)
    if attempt.queued_s is None or attempt.queued_s > longest_s:
        attempt.queued_s = longest_s
        attempt.save(update_fields=["queued_s"])


def release(*, job: Job, attempt: Attempt, claims: Iterable[Claim], now: datetime) -> None:
    """Free the GPUs that claims of a job hold still, and charge them.

    To be called within a transaction that holds the job.
    """
    held = Allocation.objects.filter(claim__in=claims, released_at__isnull=True)
    if gpus := held.update(released_at=now):
        charge(job=job, gpus=gpus, begun_at=attempt.created_at, now=now)
        hints.tick()


def _follow(job: Job, attempt: Attempt, outcome: Outcome, reason: str, now: datetime) -> Job:
    """The state that follows an ended attempt (docs/architecture.md, "Reliability")."""
    data = {"attempt": str(attempt.pk), "outcome": outcome.value}
    stop_for = StopFor(job.stop_for) if job.stop_for else None
    if outcome is Outcome.SUCCEEDED and stop_for is not StopFor.CANCEL:
        # Reports arrive together: a short training may succeed before it was seen running.
        job = catch_up(job, now)
        return move_job(job=job, to=JobState.SUCCEEDED, now=now, reason=reason, data=data)
    then = STOPPED_TO[stop_for] if stop_for else JobState.QUEUED
    budget = _budget(attempt, outcome)
    own_fault = budget in (Budget.USER, Budget.OOM)
    goes_on = then is JobState.QUEUED and not own_fault
    if stop_for is StopFor.TIME_LIMIT or (goes_on and is_used_up(job, now)):
        return fail_at_limit(job, now, data)
    if stop_for is StopFor.CANCEL or (stop_for and not own_fault) or budget in UNLIMITED:
        waits = why_it_waits(job) if then is JobState.QUEUED else {}
        return move_job(job=job, to=then, now=now, reason=reason, data=data, **waits)
    return _spend(job, budget, then, reason, now, data)


def _budget(attempt: Attempt, outcome: Outcome) -> Budget:
    """Return the budget of the outcome.

    A start that timed out because a node did not take it up counts as declined there. No loss of a spot node
    counts.
    """
    not_taken_up = outcome is Outcome.TIMEOUT and attempt.claims.filter(outcome=Outcome.DECLINED).exists()
    if not_taken_up:
        return Budget.DECLINES
    return Budget.NONE if _withdrawn(attempt, outcome) else BUDGETS[outcome]


def _withdrawn(attempt: Attempt, outcome: Outcome) -> bool:
    """Did it end because a spot node went away, announced or not?

    A machine that is shut down may kill the training first.
    """
    spot = attempt.claims.filter(node__kind=NodeTerms.SPOT)
    if outcome is Outcome.LOST:
        return spot.exists()
    return outcome is Outcome.KILLED and spot.filter(node__withdraw_at__isnull=False).exists()


def catch_up(job: Job, now: datetime) -> Job:
    """Walk a placed job to running, so that only listed transitions happen."""
    if job.state == JobState.ASSIGNED:
        job = move_job(job=job, to=JobState.STARTING, now=now, first_started_at=job.first_started_at or now)
    if job.state == JobState.STARTING:
        job = move_job(job=job, to=JobState.RUNNING, now=now)
    return job


def _spend(job: Job, budget: Budget, then: JobState, reason: str, now: datetime, data: dict[str, Any]) -> Job:
    """Queue the job again, or pause it as asked, if the budget allows; else fail it."""
    column, allowed = {
        Budget.USER: ("errors_used", job.retries),
        Budget.OOM: ("oom_used", settings.OOM_RETRIES),
        Budget.INFRASTRUCTURE: ("infrastructure_used", settings.INFRASTRUCTURE_RETRIES),
    }[budget]
    used = getattr(job, column)
    if used >= allowed:
        return move_job(
            job=job,
            to=JobState.FAILED,
            now=now,
            reason=reason,
            data=data,
            failure_class=FAILURE_CLASS[budget],
            failure_reason=reason,
        )
    columns: dict[str, Any] = {column: used + 1}
    if budget is Budget.OOM:
        columns.update(_ask_for_less(job))
    return move_job(job=job, to=then, now=now, reason=reason, data=data, **columns)


def _ask_for_less(job: Job) -> dict[str, Any]:
    """Return the columns of a job that is to need less after running out of memory.

    It has no binding, and only options predicted to need less, once these are computed.
    """
    hints.refresh_options()
    failed = read_option(job.binding) if job.binding else None
    return {
        "binding": None,
        "options": [],
        "options_for": "",
        "less_memory_than": failed.peak_memory_bytes.value if failed else None,
        "wait_code": WaitState.OPTIONS,
        "wait_text": "It ran out of memory; a configuration that needs less is being looked for.",
    }
