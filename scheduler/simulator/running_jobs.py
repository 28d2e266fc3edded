"""Jobs on GPUs: their starts, their true pace, and their stops.

Progress is rate times time, and a rate changes only when an allocation, a phase of the job or its neighbours
change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from knowledge.core.domain.types import Option
from scheduler.core.types import GpuId
from scheduler.simulator.errors import PolicyBroke
from scheduler.simulator.events import CHANGE, Event, EventQueue
from scheduler.simulator.packing import Packing
from scheduler.simulator.policy_drivers import PolicyDriver
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.ground_truth import GroundTruth, Throughput, shares_of
from scheduler.simulator.world.interference import Colocation
from scheduler.simulator.world.nodes import Machines
from scheduler.simulator.world.predictions import PredictionSource
from scheduler.simulator.world.profiling import ProfilingRuns
from scheduler.simulator.world.rented import Charges
from scheduler.simulator.world.runs import Run


class RunningJobs:
    """The course of jobs on GPUs; the engine decides which start and stop."""

    settings: SimulationSettings
    truth: GroundTruth
    predictions: PredictionSource
    machines: Machines
    charges: Charges
    decider: PolicyDriver
    events: EventQueue
    colocation: Colocation | None
    packing: Packing | None
    profiling: ProfilingRuns | None
    runs: dict[str, Run]
    running: int  # jobs that hold GPUs

    def _start(
        self, run: Run, now: float, option: Option, gpus: tuple[GpuId, ...], host: Run | None = None
    ) -> None:
        """host: whose GPUs it shares; None: they are free."""
        run.check_start(option, gpus)
        if host is None:
            self.machines.take(gpus, run.job.job_id)
        delay_s = self.truth.startup_s(run.job, option)
        if run.first_start is not None:
            delay_s += self.settings.restart_of(run)
        run.start(now, option, gpus, delay_s)
        self.running += 1
        self.decider.starts(run)
        if self.packing:
            self._slow_down(self.packing.starts(run, host), now)
        pace = self.truth.pace(run.job, option, shares_of(option, gpus), run.done)
        if pace is None:
            run.rate, run.until = 0.0, 1.0
            self.events.push(now + self.truth.fails_after_s(run.job, option), Event.FAILURE, run, run.plan)
            return
        if self.colocation:
            self._slow_down(self.colocation.joins(run), now)
        self._take_pace(run, pace)
        if self.profiling and run.profiling:
            self.events.push(self.profiling.ends_at(run), Event.PROFILED, run, run.plan)

    def _set_pace(self, run: Run) -> None:
        """Take the true rate from here on, and plan its end."""
        pace = self.truth.pace(run.job, run.held, shares_of(run.held, run.gpus), run.done)
        if pace is None:
            raise PolicyBroke(f"job {run.job.job_id} ran with {run.held.key} and suddenly cannot")
        self._take_pace(run, pace)

    def _take_pace(self, run: Run, pace: Throughput) -> None:
        run.rate, run.until = pace.rate, pace.until
        if self.machines.sited and (level := self.machines.level(run.gpus)) is not None:
            run.rate *= self.truth.kept_at(run.job, run.held, level)
        if run.done and self.truth.stretches(run.job):
            run.tell(self.predictions.options(run.job, run.done))
        self._plan_change(run)

    def _plan_change(self, run: Run) -> None:
        self.events.push(run.next_change(self.settings.report_s), CHANGE, run, run.plan)

    def _release(self, run: Run, now: float) -> None:
        self.charges.settle(run, now)
        self.running -= 1
        if self.packing and (partner := self.packing.leaves(run)):
            self._slow_down([(partner, 1.0)], now)
            run.stop(now)
            return
        self.decider.stops(run)
        if self.colocation:
            self._slow_down(self.colocation.leaves(run), now)
        self.machines.give_back(run.stop(now))

    def _put_back(self, run: Run, now: float) -> None:
        """A running job is stopped, and waits again."""
        self._release(run, now)
        self.decider.waits(run, now)

    def _pause(self, run: Run, now: float) -> None:
        """Save and stop a job if it runs; it waits no more until it is resumed."""
        if run.running:
            self._release(run, now)
        else:
            self.decider.leaves(run)
        run.paused = True

    def _on(self, nodes: Collection[str]) -> list[Run]:
        return [run for run in self.runs.values() if any(node in nodes for node, _ in run.gpus)]

    def _slow_down(self, neighbours: Iterable[tuple[Run, float]], now: float) -> None:
        """Neighbours run at another share of their pace from now on."""
        for run, factor in neighbours:
            if run.option is not None and factor != run.factor:
                self.charges.settle(run, now)
                run.factor = factor
                if run.rate:
                    run.plan += 1
                    self._plan_change(run)
