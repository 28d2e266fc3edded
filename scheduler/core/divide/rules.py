"""When a policy that divides the whole cluster leaves a running job as it is.

The policies' sources know no such rules, so that by default there are none; the live portal sets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from knowledge.core.domain.types import Option
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import JobInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class DivideRules:
    """Bounds on stops and resizes.

    min_run_s: a job runs for so long at least before it is stopped, moved or resized.
    limit: stops within a day after which a job keeps what it holds; moves and resizes do not count.
    worthwhile: nobody gets faster GPUs who saves no more time there than the restart costs, and nobody is
    touched who ends within that time.
    """

    preempts: ClassVar[bool] = True
    min_run_s: float = 0.0
    limit: int | None = None
    worthwhile: bool = False

    def movable(self, job: JobInfo, now: float) -> bool:
        """May this running job be stopped, moved or resized?"""
        if not job.preemptible or job.holds is None:
            return False
        if self.limit is not None and job.preemptions >= self.limit:
            return False
        if now - job.holds.since < self.min_run_s:
            return False
        if not self.worthwhile:
            return True
        left_s = job.releases_in_s
        return left_s is None or left_s > job.unsaved_s + job.restart_s

    def worth(self, job: JobInfo, option: Option) -> bool:
        """May the job be given this option?

        Slower ones serve others and are always allowed.
        """
        if not self.worthwhile or job.holds is None:
            return True
        left_s = job.releases_in_s
        if left_s is None:
            return True
        held, offered = known_rates([job.holds.option, option])
        if offered <= held:
            return True
        return left_s * (1 - held / offered) > job.unsaved_s + job.restart_s
