"""GPUs that pass from jobs that are stopped to a job that goes first.

The stops and the reservation of the GPUs are one transaction, so that nobody is stopped for a job that is
gone and nobody else is given the GPUs meanwhile. The start follows once they are free.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F

from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Option
from portal.events.types import EventType
from scheduler.core.handovers import Handover, Why
from scheduler.core.stopping import StopReason
from scheduler.core.types import GpuId
from scheduler.errors import CannotPlace
from scheduler.models import Attempt, Job, PendingGpu, PendingStart
from scheduler.services.jobs.preemptions import GPUS_ARE_KEPT, note_kept_idle, note_preemptions, stop_data
from scheduler.services.jobs.starts import (
    GpuNow,
    gpus_now,
    held_jobs,
    ready_nodes,
    require_as_decided,
    require_nodes,
)
from scheduler.services.jobs.transitions import Note, locked, move_all, note_all, note_job
from scheduler.states import STOPPABLE, JobState, StopFor, WaitState

NO_REASON: dict[str, Any] = {"wait_code": "", "wait_text": ""}
COLUMNS = ("state", "stop_for", "version", "fence", "options", "binding", "held_at")  # as far as is asked
SPARE_S = 60.0  # beyond the longest stop: a pending start that is older lapses
log = logging.getLogger(__name__)


class _Stop(NamedTuple):
    """Why a job is stopped, and for whom.

    None: for nobody, itself: it moves.
    """

    why: Why
    gainer: Job | None


class _Kept(NamedTuple):
    """A job, and the GPUs that are kept for it."""

    taker: Job
    option: Option
    gpus: list[GpuNow]


@transaction.atomic(savepoint=False)
def hand_over(*, changes: Sequence[Handover], policy: str, now: datetime) -> list[Handover]:
    """Stop the victims of changes and keep their GPUs for the jobs that take them.

    The number of queries does not grow with theirs. A change is left out where the rows are no longer as the
    decision saw them: nobody is stopped for it. Returns the others.
    """
    done, at_once = [], _AtOnce(changes, now)
    for change in changes:
        try:
            at_once.add(change)
        except CannotPlace as changed:
            about = {"job": change.takes.job, "stops": sorted(change.victims), "reason": str(changed)}
            log.info("handover not applied", extra=about)
        else:
            done.append(change)
    _stop(at_once.stops, policy, now)
    _keep(at_once.kept, now)
    return done


@transaction.atomic
def release_gpus(*, job_id: str, reason: StopReason, policy: str, now: datetime) -> None:
    """Stop a job that a policy gives no GPUs in this round.

    It is stopped although nobody takes them at once.
    """
    _stop({locked(job_id): _Stop(Why.of(reason), None)}, policy, now)


class _AtOnce:
    """Changes that are checked one by one against held rows, and written together."""

    def __init__(self, changes: Sequence[Handover], now: datetime) -> None:
        takers = {change.takes.job for change in changes}
        concerned = takers.union(*(change.held_by.union(change.victims) for change in changes))
        self.jobs = held_jobs(concerned, *COLUMNS)
        gpus = {gpu for change in changes for gpu in change.takes.gpus}
        self.nodes = ready_nodes({node for node, _ in gpus}, now)
        self.gpus = gpus_now(gpus)
        waiting = PendingStart.objects.filter(job__in=takers)
        self.waits = set(waiting.values_list("job", flat=True))  # jobs for which other GPUs are kept
        self.stops: dict[Job, _Stop] = {}
        self.kept: list[_Kept] = []

    def add(self, change: Handover) -> None:
        """Raises CannotPlace, and nothing is added."""
        taker = self.jobs.get(change.takes.job)
        if taker is None:
            raise CannotPlace(f"Job {change.takes.job} is gone.")
        self._require_its_turn(taker, change)
        require_nodes(self.nodes, {node for node, _ in change.takes.gpus}, change.takes.option)
        gpus = self._wanted(taker, change.takes.gpus)
        holders = {gpu.holder for gpu in gpus if gpu.holder} - {taker.pk}
        if staying := [pk for pk in sorted(holders - change.victims.keys()) if not self._leaves(pk)]:
            raise CannotPlace(f"Job {staying[0]} holds a GPU and is not stopped for this.")
        for pk in sorted(holders & change.victims.keys()):
            job = self.jobs[pk]
            self.stops[job] = _Stop(change.victims[pk], job if pk in change.moving else taker)
        if change.why and not change.evicted:
            self.stops[taker] = _Stop(change.why, taker)
        self.kept.append(_Kept(taker, change.takes.option, gpus))

    def _require_its_turn(self, taker: Job, change: Handover) -> None:
        if change.evicted:
            fits = taker.preempting or taker in self.stops
        else:
            fits = taker.state in STOPPABLE if change.moves else taker.state == JobState.QUEUED
        if not fits:
            raise CannotPlace(f"Job {taker.pk} is {taker.state} by now.")
        if taker.state == JobState.QUEUED:
            require_as_decided(taker, change.takes.option)

    def _wanted(self, taker: Job, wanted: Sequence[GpuId]) -> list[GpuNow]:
        """The GPUs in order. Raises CannotPlace if one is gone, or kept."""
        gpus = [self.gpus[gpu] for gpu in sorted(wanted) if gpu in self.gpus]
        if len(gpus) != len(wanted):
            raise CannotPlace("A node no longer has the GPUs that were chosen.")
        if taker.pk in self.waits:
            raise CannotPlace(f"GPUs are kept for job {taker.pk} already.")
        if any(gpu.kept for gpu in gpus):
            raise CannotPlace("A GPU is kept for another job.")
        return gpus

    def _leaves(self, job_id: str) -> bool:
        job = self.jobs.get(job_id)
        return job is not None and (job.state == JobState.STOPPING or job in self.stops)


def _stop(stops: Mapping[Job, _Stop], policy: str, now: datetime) -> None:
    """Stop those of the jobs that run.

    Their attempts name the job that gains, or themselves if they move.
    """
    # Others leave already.
    running = {job: stop for job, stop in stops.items() if job.state in STOPPABLE}
    for_whom: dict[Job, list[Job]] = defaultdict(list)
    moving = [job for job, stop in running.items() if stop.gainer == job]
    for job, stop in running.items():
        if stop.gainer and stop.gainer != job:
            for_whom[stop.gainer].append(job)
    live = Attempt.objects.filter(ended_at__isnull=True)
    if moving:
        live.filter(job__in=moving).update(stopped_for=F("job"))
    for gainer, jobs in for_whom.items():
        live.filter(job__in=jobs).update(stopped_for=gainer)
    note_preemptions(reasons={job: stop.why.reason for job, stop in running.items()}, policy=policy, now=now)
    notes = {job: _stop_note(stop.why) for job, stop in running.items()}
    move_all(notes=notes, to=JobState.STOPPING, stop_for=StopFor.PREEMPT, now=now, stop_grace_s=None)
    for job, stop in running.items():
        log.info("preempted", extra={"job": job.pk, "stopped_for": stop.gainer.pk if stop.gainer else None})


def _stop_note(why: Why) -> Note:
    return Note(why.said, stop_data(why.reason))


def _keep(kept: Sequence[_Kept], now: datetime) -> None:
    """Keep GPUs for each of the jobs, which say so."""
    expires_at = now + timedelta(seconds=settings.STOP_GRACE_S + SPARE_S)
    starts = PendingStart.objects.bulk_create(
        PendingStart(job=one.taker, option=option_json(one.option), made_at=now, expires_at=expires_at)
        for one in kept
    )
    PendingGpu.objects.bulk_create(
        PendingGpu(start=start, gpu_id=gpu.pk)
        for start, one in zip(starts, kept, strict=True)
        for gpu in one.gpus
    )
    notes = {one.taker: _note(one) for one in kept}
    for is_queued, columns in ((True, GPUS_ARE_KEPT), (False, {})):
        of_these = {job: note for job, note in notes.items() if (job.state == JobState.QUEUED) is is_queued}
        note_all(notes=of_these, event=EventType.JOB_RESERVED, now=now, **columns)


def _note(kept: _Kept) -> Note:
    names = ", ".join(f"{gpu.node} {gpu.place}" for gpu in kept.gpus)
    gpus = [[gpu.node_id, gpu.place] for gpu in kept.gpus]
    return Note(f"GPUs are kept for it: {names}.", {"option": kept.option.key, "gpus": gpus})


def explain_pending(start: PendingStart) -> None:
    """Say why the job waits, if it did not run when its GPUs were kept."""
    Job.objects.filter(pk=start.job_id, state=JobState.QUEUED).exclude(wait_code=WaitState.PENDING).update(
        **GPUS_ARE_KEPT
    )


@transaction.atomic
def let_lapse(*, start: PendingStart, reason: str, now: datetime) -> None:
    """Keep nothing for this job any more; jobs stopped for it are queued again."""
    job = Job.objects.select_for_update(of=("self",)).get(pk=start.job_id)
    note_kept_idle(takers=[job], now=now)
    if not PendingStart.objects.filter(pk=start.pk).delete()[0]:
        return
    log.info("pending start lapsed", extra={"job": job.pk, "reason": reason})
    waited = NO_REASON if job.wait_code == WaitState.PENDING else {}
    note_job(job=job, event=EventType.JOB_RESERVATION_OVER, now=now, reason=reason, **waited)


def gpu_ids(start: PendingStart) -> tuple[GpuId, ...]:
    """The GPUs that are kept, in order."""
    return tuple((kept.gpu.node_id, kept.gpu.index) for kept in start.gpus.all())
