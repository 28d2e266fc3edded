"""GPUs that pass from jobs that are stopped to a job that goes first.

The stops and the reservation of the GPUs are one transaction, so that nobody is stopped for a job that is
gone and nobody else is given the GPUs meanwhile. The start follows once they are free.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Option
from scheduler.core.handovers import Handover
from scheduler.core.types import GpuId
from scheduler.errors import CannotPlace
from scheduler.models import Allocation, Attempt, Gpu, Job, PendingGpu, PendingStart
from scheduler.services.jobs.attempts import hold_ready_nodes, require_option, wanted_gpus
from scheduler.services.jobs.transitions import locked, note_job
from scheduler.services.jobs.verbs import preempt_job
from scheduler.states import STOPPABLE, JobEventKind, JobState, StopFor, WaitState

WAITS: dict[str, Any] = {
    "wait_code": WaitState.PENDING,
    "wait_text": "GPUs are kept for it; it starts when the jobs on them have saved their work and left.",
}
NO_REASON: dict[str, Any] = {"wait_code": "", "wait_text": ""}
SPARE_S = 60.0  # beyond the longest stop: a pending start that is older lapses
log = logging.getLogger(__name__)


@transaction.atomic
def hand_over(*, change: Handover, now: datetime) -> PendingStart:
    """Stop the victims of a change and keep its GPUs for the job that takes them.

    Raises CannotPlace, and stops nobody, when the rows are no longer as the decision saw them.
    """
    jobs = _held_rows({change.takes.job, *change.held_by, *change.victims})
    taker = jobs.get(change.takes.job)
    if taker is None:
        raise CannotPlace(f"Job {change.takes.job} is gone.")
    _require_its_turn(taker, change)
    gpus = wanted_gpus(change.takes.gpus)
    hold_ready_nodes(sorted({gpu.node_id for gpu in gpus}), change.takes.option, now)
    if PendingGpu.objects.filter(gpu__in=gpus).exists():
        raise CannotPlace("A GPU is kept for another job.")
    holders = _holders(gpus) - {taker.pk}
    if staying := [pk for pk in holders - change.victims.keys() if not _leaves(jobs.get(pk))]:
        raise CannotPlace(f"Job {staying[0]} holds a GPU and is not stopped for this.")
    for pk in sorted(holders & change.victims.keys()):
        _stop(jobs[pk], jobs[pk] if pk in change.moving else taker, change.victims[pk], now)
    if change.moves and not change.evicted:
        taker = _stop(taker, taker, change.why, now)
    return _keep(taker, change.takes.option, gpus, now)


@transaction.atomic
def release_gpus(*, job_id: str, reason: str, now: datetime) -> None:
    """Stop a job that a policy gives no GPUs in this round.

    It is stopped although nobody takes them at once.
    """
    job = locked(job_id)
    _stop(job, None, reason, now)


def _held_rows(ids: set[str]) -> dict[str, Job]:
    """Return the jobs, held in one order.

    So two that need the same never wait for each other.
    """
    rows = Job.objects.select_for_update(of=("self",)).filter(pk__in=ids).order_by("pk")
    return {job.pk: job for job in rows}


def _require_its_turn(taker: Job, change: Handover) -> None:
    if PendingStart.objects.filter(job=taker).exists():
        raise CannotPlace(f"GPUs are kept for job {taker.pk} already.")
    if change.evicted:
        fits = taker.preempting
    else:
        fits = taker.state in STOPPABLE if change.moves else taker.state == JobState.QUEUED
    if not fits:
        raise CannotPlace(f"Job {taker.pk} is {taker.state} by now.")
    if taker.state == JobState.QUEUED:
        require_option(taker, change.takes.option)


def _holders(gpus: Sequence[Gpu]) -> set[str]:
    held = Allocation.objects.filter(gpu__in=gpus, released_at__isnull=True)
    return set(held.values_list("claim__attempt__job_id", flat=True))


def _leaves(job: Job | None) -> bool:
    return job is not None and job.state == JobState.STOPPING


def _stop(victim: Job, taker: Job | None, reason: str, now: datetime) -> Job:
    """Stop a job that runs; its attempt names the job that gains, or itself."""
    if victim.state not in STOPPABLE:
        return victim  # it leaves already
    live = Attempt.objects.filter(job=victim, ended_at__isnull=True)
    live.update(stopped_for=taker)
    log.info("preempted", extra={"job": victim.pk, "stopped_for": taker.pk if taker else None})
    return preempt_job(job=victim, stop_for=StopFor.PREEMPT, now=now, reason=reason, grace_s=None)


def _keep(taker: Job, option: Option, gpus: Sequence[Gpu], now: datetime) -> PendingStart:
    expires_at = now + timedelta(seconds=settings.STOP_GRACE_S + SPARE_S)
    start = PendingStart.objects.create(
        job=taker, option=option_json(option), made_at=now, expires_at=expires_at
    )
    PendingGpu.objects.bulk_create(PendingGpu(start=start, gpu=gpu) for gpu in gpus)
    names = ", ".join(f"{gpu.node.name} {gpu.index}" for gpu in gpus)
    note_job(
        job=taker, kind=JobEventKind.RESERVED, now=now, reason=f"GPUs are kept for it: {names}.",
        data={"option": option.key, "gpus": [[gpu.node_id, gpu.index] for gpu in gpus]},
        **(WAITS if taker.state == JobState.QUEUED else {}),
    )  # fmt: skip
    return start


def explain_pending(start: PendingStart) -> None:
    """Say why the job waits, if it did not run when its GPUs were kept."""
    Job.objects.filter(pk=start.job_id, state=JobState.QUEUED).exclude(wait_code=WaitState.PENDING).update(
        **WAITS
    )


@transaction.atomic
def let_lapse(*, start: PendingStart, reason: str, now: datetime) -> None:
    """Keep nothing for this job any more; jobs stopped for it are queued again."""
    job = Job.objects.select_for_update(of=("self",)).get(pk=start.job_id)
    if not PendingStart.objects.filter(pk=start.pk).delete()[0]:
        return
    log.info("pending start lapsed", extra={"job": job.pk, "reason": reason})
    waited = NO_REASON if job.wait_code == WaitState.PENDING else {}
    note_job(job=job, kind=JobEventKind.RESERVATION_OVER, now=now, reason=reason, **waited)


def gpu_ids(start: PendingStart) -> tuple[GpuId, ...]:
    """The GPUs that are kept, in order."""
    return tuple((kept.gpu.node_id, kept.gpu.index) for kept in start.gpus.all())
