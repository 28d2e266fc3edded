"""GPUs that pass from jobs that are stopped to a job that goes first.

The stops and the reservation of the GPUs are one transaction, so that nobody is stopped for a job that is
gone and nobody else is given the GPUs meanwhile. The start follows once they are free.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, FilteredRelation, Q

from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Option
from scheduler.core.handovers import Handover
from scheduler.core.types import GpuId
from scheduler.errors import CannotPlace
from scheduler.models import Attempt, Gpu, Job, PendingGpu, PendingStart
from scheduler.services.jobs.attempts import by_node, hold_ready_nodes, require_option
from scheduler.services.jobs.transitions import locked, note_job, preempt_all
from scheduler.states import STOPPABLE, JobEventKind, JobState, WaitState

WAITS: dict[str, Any] = {
    "wait_code": WaitState.PENDING,
    "wait_text": "GPUs are kept for it; it starts when the jobs on them have saved their work and left.",
}
NO_REASON: dict[str, Any] = {"wait_code": "", "wait_text": ""}
COLUMNS = ("state", "stop_for", "version", "fence", "options", "binding")  # of the jobs, as far as is asked
SPARE_S = 60.0  # beyond the longest stop: a pending start that is older lapses
log = logging.getLogger(__name__)


class _Wanted(NamedTuple):
    """A GPU that a job is to take, as it is now.

    place: its index on its node. kept: for another job. holder: the job that holds it. waits: other GPUs are
    kept for the job already.
    """

    pk: int
    node_id: str
    place: int
    node: str
    kept: int | None
    holder: str | None
    waits: bool


@transaction.atomic(savepoint=False)
def hand_over(*, change: Handover, now: datetime) -> PendingStart:
    """Stop the victims of a change and keep its GPUs for the job that takes them.

    The number of queries does not grow with theirs. Raises CannotPlace when the rows are no longer as
    the decision saw them, and the caller's transaction is over: nobody is stopped.
    """
    jobs = _held_rows({change.takes.job, *change.held_by, *change.victims})
    taker = jobs.get(change.takes.job)
    if taker is None:
        raise CannotPlace(f"Job {change.takes.job} is gone.")
    _require_its_turn(taker, change)
    hold_ready_nodes(sorted({node for node, _ in change.takes.gpus}), change.takes.option, now)
    gpus = _wanted(taker, change.takes.gpus)
    holders = {gpu.holder for gpu in gpus if gpu.holder} - {taker.pk}
    if staying := [pk for pk in sorted(holders - change.victims.keys()) if not _leaves(jobs.get(pk))]:
        raise CannotPlace(f"Job {staying[0]} holds a GPU and is not stopped for this.")
    reasons = {jobs[pk]: change.victims[pk] for pk in sorted(holders & change.victims.keys())}
    moving = [jobs[pk] for pk in change.moving if jobs.get(pk) in reasons]
    if change.moves and not change.evicted:
        reasons[taker] = change.why
        moving.append(taker)
    _stop(reasons, taker, moving, now)
    return _keep(taker, change.takes.option, gpus, now)


@transaction.atomic
def release_gpus(*, job_id: str, reason: str, now: datetime) -> None:
    """Stop a job that a policy gives no GPUs in this round.

    It is stopped although nobody takes them at once.
    """
    _stop({locked(job_id): reason}, None, (), now)


def _held_rows(ids: set[str]) -> dict[str, Job]:
    """Return the jobs, held in one order.

    So two that need the same never wait for each other.
    """
    rows = Job.objects.select_for_update(of=("self",)).filter(pk__in=ids).order_by("pk").only(*COLUMNS)
    return {job.pk: job for job in rows}


def _require_its_turn(taker: Job, change: Handover) -> None:
    if change.evicted:
        fits = taker.preempting
    else:
        fits = taker.state in STOPPABLE if change.moves else taker.state == JobState.QUEUED
    if not fits:
        raise CannotPlace(f"Job {taker.pk} is {taker.state} by now.")
    if taker.state == JobState.QUEUED:
        require_option(taker, change.takes.option)


def _wanted(taker: Job, gpus: Sequence[GpuId]) -> list[_Wanted]:
    """The GPUs as they are now. Raises CannotPlace if one is gone, or kept."""
    held = FilteredRelation("allocations", condition=Q(allocations__released_at__isnull=True))
    of_nodes = (Q(node=node, index__in=indices) for node, indices in by_node(gpus).items())
    rows = Gpu.objects.filter(reduce(or_, of_nodes)).annotate(
        held=held, waits=Exists(PendingStart.objects.filter(job=taker))
    )
    columns = ("node_id", "index", "node__name", "pending", "held__claim__attempt__job", "waits")
    found = [_Wanted(*row) for row in rows.order_by("node", "index").values_list("pk", *columns)]
    if len(found) != len(gpus):
        raise CannotPlace("A node no longer has the GPUs that were chosen.")
    if any(gpu.waits for gpu in found):
        raise CannotPlace(f"GPUs are kept for job {taker.pk} already.")
    if any(gpu.kept for gpu in found):
        raise CannotPlace("A GPU is kept for another job.")
    return found


def _leaves(job: Job | None) -> bool:
    return job is not None and job.state == JobState.STOPPING


def _stop(reasons: Mapping[Job, str], taker: Job | None, moving: Collection[Job], now: datetime) -> None:
    """Stop those of the jobs that run.

    Their attempts name the job that gains, or themselves if they move.
    """
    # Others leave already.
    running = {job: reason for job, reason in reasons.items() if job.state in STOPPABLE}
    for gainer, jobs in ((F("job"), running.keys() & moving), (taker, running.keys() - moving)):
        if jobs:
            Attempt.objects.filter(job__in=jobs, ended_at__isnull=True).update(stopped_for=gainer)
    preempt_all(reasons=running, now=now)
    for job in running:
        gains = job if job in moving else taker
        log.info("preempted", extra={"job": job.pk, "stopped_for": gains.pk if gains else None})


def _keep(taker: Job, option: Option, gpus: Sequence[_Wanted], now: datetime) -> PendingStart:
    expires_at = now + timedelta(seconds=settings.STOP_GRACE_S + SPARE_S)
    start = PendingStart.objects.create(
        job=taker, option=option_json(option), made_at=now, expires_at=expires_at
    )
    PendingGpu.objects.bulk_create(PendingGpu(start=start, gpu_id=gpu.pk) for gpu in gpus)
    names = ", ".join(f"{gpu.node} {gpu.place}" for gpu in gpus)
    note_job(
        job=taker, kind=JobEventKind.RESERVED, now=now, reason=f"GPUs are kept for it: {names}.",
        data={"option": option.key, "gpus": [[gpu.node_id, gpu.place] for gpu in gpus]}, reload=False,
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
