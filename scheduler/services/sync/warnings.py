"""Warnings of running jobs.

There is an event when a risk becomes likely, and one when it is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Min, Q, Sum

from knowledge.core.domain.cost import cost
from portal.events.types import EventType
from scheduler.core.job_warnings import PARTS, WARNINGS, Outlook, PeakGrowth, Risk, chances, likely
from scheduler.models import Allocation, Attempt, Job
from scheduler.selectors.figures.cost import job_costs
from scheduler.services.jobs.transitions import locked, note_job
from scheduler.states import JobState

SILENT_S = 30.0  # of jobs that report more often, the reports see to it
NEARLY_FULL = 0.8  # the share of its GPUs' memory from which on a job's growth is looked at
FEWEST_STEPS = 20


def warn(job: Job, attempt: Attempt, now: datetime, memory: PeakGrowth | None = None) -> None:
    """Look at the limits of a job that trains; the caller holds it."""
    outlook = _outlook(job, attempt, now, memory)
    if outlook is None or job.state == JobState.STOPPING:
        return
    found, before = chances(outlook), [Risk(warning["code"]) for warning in attempt.warnings]
    after = likely(found, before)
    if after == before:
        return
    for risk in after:
        if risk not in before:
            reason = f"{WARNINGS[risk].text} {WARNINGS[risk].remedy}"
            data = {"code": risk.value, "chance": round(found[risk], 3)}
            note_job(job=job, event=_warning_of(risk), now=now, reason=reason, data=data)
    for risk in before:
        if risk not in after:
            data = {"code": risk.value}
            note_job(
                job=job, event=EventType.JOB_WARNING_OVER, now=now, reason=WARNINGS[risk].over, data=data
            )
    _keep(attempt, after, now)


def _warning_of(risk: Risk) -> EventType:
    return EventType.JOB_DEADLINE_AT_RISK if risk is Risk.LATE else EventType.JOB_WARNING


def warn_of_silent_jobs(now: datetime) -> None:
    """Look at the limits of jobs that report nothing: a stall makes them late, too."""
    limited = Q(job__deadline_at__isnull=False) | Q(job__budget__isnull=False) | Q(stops_at__isnull=False)
    live = Attempt.objects.filter(limited, ended_at__isnull=True, job__state=JobState.RUNNING)
    heard_before = (now - timedelta(seconds=SILENT_S)).timestamp()
    for attempt in live.filter(progress__heard_at__lt=heard_before):
        _warn_alone(attempt, now)


def warn_of_growing_jobs(now: datetime) -> None:
    """Look at the memory of jobs that have little left.

    A slot of a CPU has no limit of its own.
    """
    capacity = Min("claims__allocations__gpu__memory_bytes")
    live = Attempt.objects.filter(ended_at__isnull=True, job__state=JobState.RUNNING)
    on_gpus = live.exclude(claims__allocations__gpu__model="cpu").annotate(capacity=capacity)
    for attempt in on_gpus.filter(peak_memory_bytes__gt=NEARLY_FULL * F("capacity")):
        if (memory := _memory(attempt, attempt.capacity)) is not None:
            _warn_alone(attempt, now, memory)


def _warn_alone(attempt: Attempt, now: datetime, memory: PeakGrowth | None = None) -> None:
    """Warn in a transaction of its own, unless the attempt has ended meanwhile."""
    with transaction.atomic():
        job = locked(attempt.job_id)
        attempt.refresh_from_db()
        if attempt.ended_at is None and job.state == JobState.RUNNING:
            warn(job, attempt, now, memory)


def _memory(attempt: Attempt, capacity: float) -> PeakGrowth | None:
    """The growth of peaks so far; None before enough steps were reported."""
    remaining = attempt.remaining
    steps = remaining.pace.step - attempt.resume_step if remaining else 0
    if remaining is None or steps < FEWEST_STEPS:
        return None
    rows = attempt.metrics.filter(memory_bytes__isnull=False).order_by("-step")
    ends = [attempt.resume_step + steps * part // PARTS for part in range(1, PARTS + 1)]
    measured = [rows.filter(step__lte=at).values_list("memory_bytes", flat=True).first() for at in ends]
    peaks = tuple(float(peak) for peak in measured if peak is not None)
    left = max(0, remaining.work.total_steps - remaining.pace.step)
    if len(peaks) < PARTS:
        return None
    return PeakGrowth(peaks=peaks, steps=steps, steps_left=left, capacity=capacity)


def _outlook(job: Job, attempt: Attempt, now: datetime, memory: PeakGrowth | None) -> Outlook | None:
    """The outlook of a job with limits; None where nothing is known of its end."""
    if all(limit is None for limit in (job.deadline_at, job.budget, attempt.stops_at, memory)):
        return None
    left = attempt.left(now)
    if left is None:
        return None
    deadline_in_s = (job.deadline_at - now).total_seconds() if job.deadline_at else None
    stops_in_s = (attempt.stops_at - now).total_seconds() if attempt.stops_at else None
    timed = Outlook(left=left, deadline_in_s=deadline_in_s, memory=memory, stops_in_s=stops_in_s)
    if job.budget is None:
        return timed
    held = Allocation.objects.filter(claim__attempt=attempt, released_at__isnull=True)
    per_hour = held.aggregate(total=Sum("gpu__node__price_per_gpu_hour"))["total"] or 0.0
    spent = job_costs([job], now).get(job.pk)
    amount = spent.amount if spent else 0.0
    return replace(timed, budget=job.budget, spent=amount, cost_per_s=cost(1.0, per_hour))


def _keep(attempt: Attempt, risks: Sequence[Risk], now: datetime) -> None:
    since = {warning["code"]: warning["since"] for warning in attempt.warnings}
    attempt.warnings = [
        {"code": risk.value, "since": since.get(risk.value, now.isoformat())} for risk in risks
    ]
    attempt.save(update_fields=["warnings"])
