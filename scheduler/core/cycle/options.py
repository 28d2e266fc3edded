"""Options of a cycle that a policy sets beside the order of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from knowledge.core.domain.types import Goal
from scheduler.core.placement.fit import Placement
from scheduler.core.types import JobInfo

_COUNTING_MONEY = (Goal.CHEAPEST, Goal.DEADLINE)
RESTARTS_IN_A_SEGMENT = 10  # a segment shorter than this many restarts is not worth ending


class HeadOfLine(StrEnum):
    """The GPUs that a job which does not fit withholds from those behind it."""

    NOTHING = "nothing"  # any job that fits may pass
    MODELS = "models"  # the GPU models it waits for, so that no gang starves
    ALL = "all"  # strict head of line: nobody passes
    RESERVATION = "reservation"  # GPUs for the time at which it will fit (scheduler.core.cycle.reserving)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOptions:
    """Defaults never stop a running job. All times in s.

    tolerance: a job takes an option that fits now if it is at most this much worse than the best one it
    could get on the empty cluster (CoTune, who says 1.25; 2 was measured: docs/adr/0006).
    money_tolerance: the same for goals that count money, whose owners rather wait than pay twice.
    spare_restarts, spare_share: a running job is left alone that will end within so many of its restarts, or
    has less than this share of its work left; 0: only where stopping it frees its GPUs no sooner.
    hysteresis: how much better, as a share, a waiting job must rank than a running one to evict it.
    """

    placement: Placement = Placement.BEST_FIT
    blocks: HeadOfLine = HeadOfLine.MODELS
    tolerance: float = 2.0
    money_tolerance: float = 1.25
    preempts: bool = False
    min_run_s: float = 60.0  # nobody is stopped before
    cooldown_s: float = 60.0  # a preempted job evicts nobody before: no two throw each other out in turns
    limit: int | None = None  # preemptions after which a job is left alone
    hysteresis: float = 0.0
    spare_restarts: float = 0.0
    spare_share: float = 0.0
    segment_s: float | None = None  # runs are cut into segments of this length; eviction at their ends only
    boundary_s: float = 60.0  # how long after its end a segment's boundary counts: one round

    def tolerance_of(self, goal: Goal) -> float:
        """Return the factor by which an option may be worse than a job's best one.

        A job with this goal takes such an option rather than waits.
        """
        return self.money_tolerance if goal in _COUNTING_MONEY else self.tolerance

    def may_evict(self, job: JobInfo, now: float) -> bool:
        """May this waiting job take GPUs from others?"""
        return self.preempts and (job.preempted_at is None or now - job.preempted_at >= self.cooldown_s)

    def _spares(self, job: JobInfo) -> bool:
        """Is so little of a running job left that stopping it is not worth while?"""
        if job.work_left < self.spare_share:
            return True
        left_s = job.releases_in_s
        if left_s is None:
            return False
        # Its GPUs are free sooner if it ends, or nearly so.
        return left_s <= job.unsaved_s + job.restart_s or left_s < self.spare_restarts * job.restart_s

    def evictable(self, job: JobInfo, now: float) -> bool:
        """May this running job be stopped for one that ranks better?"""
        return self.stoppable(job, now) and not self._spares(job)

    def stoppable(self, job: JobInfo, now: float) -> bool:
        """Has this running job run for long enough, and was it not stopped too often?

        Without segments that stays so until it stops.
        """
        if not (self.preempts and job.preemptible and job.holds):
            return False
        if self.limit is not None and job.preemptions >= self.limit:
            return False
        ran = now - job.holds.since
        if self.segment_s is None:
            return ran >= self.min_run_s
        if job.restart_s * RESTARTS_IN_A_SEGMENT >= self.segment_s:
            return False
        return ran >= self.segment_s and ran % self.segment_s < self.boundary_s
