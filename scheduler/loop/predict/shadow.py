"""A policy on probation, brought up to date with what really came and ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import F

from scheduler.core.decisions.decision_json import UnreadableDecision
from scheduler.core.policies import POLICIES
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.shadow.advance import advance
from scheduler.core.shadow.state import JobFacts, ShadowState, first_moment
from scheduler.core.shadow.state_json import pack_state, unpack_state
from scheduler.core.types import ClusterState, JobInfo
from scheduler.loop.nodes_seen import nodes_with_free
from scheduler.loop.snapshot import take_snapshot
from scheduler.models import Job, ShadowJob, ShadowPolicy
from scheduler.selectors.figures.times import duration_s
from scheduler.selectors.figures.training import attempt_that_counts
from scheduler.states import TERMINAL, JobState

LEAST_LEFT = 0.02  # of a job, below which what is left says nothing about the whole
log = logging.getLogger(__name__)


def bring_up_to_date(now: datetime) -> ShadowPolicy | None:
    """Let the policy on probation decide about the time since the last call.

    None if there is none.

    An error is kept for the page of policies, and the next call tries again.
    """
    shadow = ShadowPolicy.objects.filter(open=True).first()
    if shadow is None or (shadow.world is not None and now <= shadow.at):
        return None
    state = take_snapshot({}, now)
    try:
        world = _played(shadow, state, now)
    except UnreadableDecision as unreadable:
        return _restarted(shadow, state, now, str(unreadable))
    except Exception as wrong:
        log.exception("a policy on probation could not decide", extra={"policy": shadow.policy})
        ShadowPolicy.objects.filter(pk=shadow.pk).update(trouble=f"{type(wrong).__name__}: {wrong}"[:500])
        return shadow
    _keep(shadow, world, state, now)
    return shadow


def _played(shadow: ShadowPolicy, state: ClusterState, now: datetime) -> ShadowState:
    if shadow.world is None:
        return first_moment(state, now.timestamp())
    world = unpack_state(bytes(shadow.world))
    policy = with_parameters(POLICIES[shadow.policy], shadow.parameters)
    cluster = replace(state, nodes=nodes_with_free(set(), now))
    advance(world, _known(world, state), cluster, policy, now.timestamp())
    return world


def _restarted(shadow: ShadowPolicy, state: ClusterState, now: datetime, why: str) -> ShadowPolicy:
    """An upgrade cannot read the occupancy: the shadow begins anew, and says so."""
    log.warning("a policy on probation begins anew", extra={"policy": shadow.policy, "reason": why})
    ShadowJob.objects.filter(shadow=shadow).delete()
    shadow.started_at = now
    _keep(shadow, first_moment(state, now.timestamp()), state, now, trouble=f"It began anew: {why}"[:500])
    return shadow


def _known(world: ShadowState, state: ClusterState) -> dict[str, JobFacts]:
    """The real fate of the jobs of the shadow, and the new jobs."""
    known = {job.id: JobFacts(info=job, scale=_scale(job)) for job in state.jobs}
    others = Job.objects.filter(pk__in=[job for job in world.lives if job not in known])
    for job in others.prefetch_related("attempts"):
        known[job.pk] = JobFacts(
            scale=_true_scale(job) if job.state != JobState.PAUSED else None,
            ended=job.state in TERMINAL,
            cancelled=job.state == JobState.CANCELLED,
        )
    for job_id in world.lives.keys() - known.keys():  # its row is gone
        known[job_id] = JobFacts(ended=True, cancelled=True)
    return known


def _scale(job: JobInfo) -> float | None:
    """The scale of a running job's promise, by what was measured."""
    held = job.holds
    if held is None or held.left_s is None or job.work_left < LEAST_LEFT or not held.option.duration_s.value:
        return None
    return held.left_s / (job.work_left * held.option.duration_s.value)


def _true_scale(job: Job) -> float | None:
    """The duration of an ended job over the promise that counts."""
    attempts = list(job.attempts.all())
    counts = attempt_that_counts(attempts)
    if counts is None or job.ended_at is None or not counts.promised.duration_s.value:
        return None
    return duration_s(attempts, job.ended_at) / counts.promised.duration_s.value or None


class _Line(NamedTuple):
    """The fields of a job that are stored."""

    started_at: datetime | None
    ended_at: datetime | None
    stops: int
    gpu_model: str
    gpus: int | None


@transaction.atomic
def _keep(
    shadow: ShadowPolicy, world: ShadowState, state: ClusterState, now: datetime, trouble: str = ""
) -> None:
    """Keep the state, unless another worker was quicker or the probation has ended."""
    lines = _lines(world)
    real = {job.id for job in state.jobs}
    for job_id in [job for job, life in world.lives.items() if life.ended_at is not None and job not in real]:
        del world.lives[job_id]  # it is over in both
        world.stops.pop(job_id, None)
    mine = ShadowPolicy.objects.filter(pk=shadow.pk, turn=shadow.turn, open=True)
    if not mine.update(
        turn=F("turn") + 1, at=now, started_at=shadow.started_at, world=pack_state(world), trouble=trouble
    ):
        return
    _write(shadow, lines)


def _lines(world: ShadowState) -> dict[str, _Line]:
    return {
        job_id: _Line(
            started_at=_moment(life.started_at),
            ended_at=_moment(life.ended_at),
            stops=world.stops.get(job_id, 0),
            gpu_model=life.info.holds.option.gpu_model if life.info.holds else "",
            gpus=life.info.holds.option.gpus if life.info.holds else None,
        )
        for job_id, life in world.lives.items()
    }


def _write(shadow: ShadowPolicy, lines: dict[str, _Line]) -> None:
    kept = {row.job_id: row for row in ShadowJob.objects.filter(shadow=shadow, job__in=lines)}
    there = set(Job.objects.filter(pk__in=lines.keys() - kept.keys()).values_list("pk", flat=True))
    ShadowJob.objects.bulk_create(
        ShadowJob(shadow=shadow, job_id=job_id, **line._asdict())
        for job_id, line in lines.items()
        if job_id in there
    )
    changed = list(_changed(kept, lines))
    ShadowJob.objects.bulk_update(changed, [*_Line._fields], batch_size=200)


def _changed(kept: dict[str, ShadowJob], lines: dict[str, _Line]) -> Iterable[ShadowJob]:
    for job_id, row in kept.items():
        line = lines[job_id]
        if line.gpus is None:  # it waits or has ended: the last placement stays
            line = line._replace(gpu_model=row.gpu_model, gpus=row.gpus)
        if line != tuple(getattr(row, name) for name in _Line._fields):
            for name, value in line._asdict().items():
                setattr(row, name, value)
            yield row


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
