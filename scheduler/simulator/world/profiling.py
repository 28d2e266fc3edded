"""Profiling runs, as Lucid's profiler makes them.

A job of which nothing is known first runs for a while to be measured; what it did then is lost, and it waits
again with a measured duration. Source: Hu et al., Lucid, ASPLOS 2023; there on nodes of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from knowledge.core.domain.types import Interval, Option, Source
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.runs import Run


@dataclass(frozen=True, slots=True)
class ProfilingRuns:
    """The runs that measure jobs; each lasts `run_s`, in s.

    measured: the options of a job after it. A job whose duration finished runs tell, those of its kind or
    similar ones, needs none.
    """

    run_s: float
    measured: Callable[[TraceJob], tuple[Option, ...]]

    def arrives(self, run: Run) -> None:
        """A job of which nothing is known is first as long as its profiling run."""
        if all(option.source is Source.DEFAULT for option in run.options):
            run.options = tuple(replace(one, duration_s=Interval(self.run_s)) for one in run.options)
            run.profiling = True

    def ends_at(self, run: Run) -> float:
        """When a profiling run that has just started is over, unless its job ends before."""
        return run.moving + self.run_s

    def over(self, run: Run) -> None:
        """The job begins anew, with measured options; it holds no GPUs."""
        run.forget_progress()
        run.profiling = False
        run.options, run.waiting_view = self.measured(run.job), None
