"""The occupancy that a policy on probation has brought about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from knowledge.core.domain.types import Interval
from scheduler.core.ahead.durations import UNKNOWN_S
from scheduler.core.ahead.lives import PlayedJob
from scheduler.core.types import ClusterState, JobInfo

# Fields of a job that follow the shadow; all others are as they really are.
OWN = (
    "holds", "work_left", "attained_gpu_s", "unsaved_s", "preemptions", "restarts", "first_started_at",
    "stopped_at", "preempted_at", "awaits",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The facts of a job by now.

    info: as it is in the live snapshot; None: it is paused, or has really ended.
    scale: its true duration over the promised one; None: nothing is measured yet.
    ended: it has really ended, so it keeps the terms that it had. cancelled: it leaves the shadow as well.
    """

    info: JobInfo | None = None
    scale: float | None = None
    ended: bool = False
    cancelled: bool = False


@dataclass(slots=True, kw_only=True)
class ShadowState:
    """The jobs that the policy on probation has met, and its memory.

    Times are s since 1970. stops: how often each job was stopped or moved. away: paused jobs.
    """

    at: float
    lives: dict[str, PlayedJob] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    memory: Mapping[str, Any] = field(default_factory=dict)
    decided_at: float | None = None

    @property
    def running(self) -> list[PlayedJob]:
        return [life for life in self.lives.values() if life.info.holds is not None]

    @property
    def waiting(self) -> list[PlayedJob]:
        return [
            life
            for job, life in self.lives.items()
            if life.info.holds is None and life.ended_at is None and job not in self.away
        ]


def first_moment(state: ClusterState, now: float) -> ShadowState:
    """Running jobs go on, and the policy begins without memory."""
    world = ShadowState(at=now, lives={job.id: met(job, now) for job in state.jobs})
    for life in world.running:
        life.started_at = life.info.holds.since if life.info.holds else None
    return world


def met(job: JobInfo, now: float) -> PlayedJob:
    """A job as the shadow meets it: it goes on with what it holds."""
    life = PlayedJob(_plain(job), 0.0, UNKNOWN_S)
    left_s = job.holds.left_s if job.holds else None
    life.resume(now, None if left_s is None else Interval(left_s))
    return life


def new(job: JobInfo) -> JobInfo:
    """A job that came since: in the shadow it begins, whatever has really happened."""
    return replace(
        job, holds=None, work_left=1.0, attained_gpu_s=0.0, unsaved_s=0.0, preemptions=0, restarts=0,
        first_started_at=None, stopped_at=None, preempted_at=None,
    )  # fmt: skip


def renewed(life: PlayedJob, real: JobInfo) -> JobInfo:
    """The job under its present terms, with what has happened to it in the shadow."""
    return replace(_plain(real), **{name: getattr(life.info, name) for name in OWN})


def _plain(job: JobInfo) -> JobInfo:
    """The job without what holds only for the place that it really has."""
    return replace(job, hold="", only_node=None, preemptible=job.borrows)
