"""The simulated cluster in time.

Events change it, the policy decides, jobs progress at their true pace. At one moment finishes
come first, then node changes, then arrivals, then one decision. Nothing happens between events
(scheduler.simulator.running_jobs). Nodes may report ends at intervals only, as they do to the portal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from scheduler.core.limits import Window
from scheduler.core.market.types import Quote
from scheduler.core.types import Action, Policy, Preempt, Resize, Start
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.events import Event, EventQueue, Rounds
from scheduler.simulator.inputs.cluster import Cluster
from scheduler.simulator.inputs.market import SimulatedMarket
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob
from scheduler.simulator.packing import Packing, guests
from scheduler.simulator.policy_drivers import IncrementalDriver, decider
from scheduler.simulator.running_jobs import RunningJobs
from scheduler.simulator.settings import RETRIES, Act, ActKind, RuleChange, SimulationSettings
from scheduler.simulator.world.dependencies import Dependencies
from scheduler.simulator.world.ground_truth import GroundTruth
from scheduler.simulator.world.interference import Colocation
from scheduler.simulator.world.nodes import Machines
from scheduler.simulator.world.predictions import PredictionSource
from scheduler.simulator.world.profiling import ProfilingRuns
from scheduler.simulator.world.rented import Charges, RentedNodes
from scheduler.simulator.world.runs import Run

_Handlers = dict[int, Callable[[float, Any, int], bool]]


class Engine(RunningJobs):
    """One simulation; `run` plays it to its end and leaves the jobs' lives in `runs`."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        cluster: Cluster,
        policy: Policy,
        truth: GroundTruth,
        predictions: PredictionSource,
        settings: SimulationSettings | None = None,
        capacity: Iterable[CapacityChange] = (),
        colocation: Colocation | None = None,
        packing: Packing | None = None,
        market: SimulatedMarket | None = None,
        profiling: ProfilingRuns | None = None,
    ) -> None:
        """Raises SimulatorError if the policy cannot pack."""
        self.settings = settings or SimulationSettings()
        self.truth, self.predictions, self.colocation = truth, predictions, colocation
        self.packing, self.profiling = packing, profiling
        self.machines = Machines(cluster)
        self.capacity_log: list[tuple[float, int]] = [(0.0, self.machines.ready_gpus)]
        self.rented = RentedNodes(market, self.machines) if market else None
        self.charges = Charges(cluster.prices, self.machines, self.rented)
        self.dependencies = Dependencies(jobs)
        careful = any(map(TraceJob.may_have_to_wait, jobs))
        self.decider = decider(policy, self.machines, self.charges, self.settings, self.rented, careful)
        self.queue = self.decider if isinstance(self.decider, IncrementalDriver) else None
        if packing and not (self.queue and self.queue.packs):
            raise SimulatorError(f"--packing: {policy.name} does not pack; take one like lucid, sjf or fifo")
        self.runs: dict[str, Run] = {}
        self.open = len(jobs)  # jobs that have not ended
        self.active = 0  # of those, the ones that have arrived
        self.running = 0  # of those, the ones that hold GPUs
        self.decisions = 0
        self.events = EventQueue(jobs, capacity, self.settings, market)
        self.rounds = Rounds(self.settings.round_of(policy), self.events, self.settings.tick_s)

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Play all events until every job has ended, or until nothing can happen any more.

        progress: told after each moment how many jobs are still open.
        """
        handlers: _Handlers = {
            Event.CHANGE: self._change, Event.FAILURE: self._failure, Event.PROFILED: self._profiled,
            Event.CAPACITY: self._capacity, Event.WINDOW: self._window, Event.RULES: self._rules,
            Event.ARRIVAL: self._arrival, Event.ROUND: self._round,
            Event.BEGIN: lambda now, *_: self._due(now), Event.MARKET: self._market, Event.ACT: self._act,
        }  # fmt: skip
        while self.open and self.events.at < inf:
            self._moment(handlers)
            if progress:
                progress(self.open)

    def _moment(self, handlers: _Handlers) -> None:
        """All that happens at one time, and the decision that follows.

        Python 3.11 is quick only at what is called often, so that this is no part of the loop around it.
        """
        events, happened = self.events, False
        now = events.at
        while events.at == now:
            _, kind, _, subject, plan = events.pop()
            if handlers[kind](now, subject, plan):
                happened = True
        if happened:
            self._decide(now)

    # events: each says whether a decision may follow

    def _arrival(self, now: float, job: TraceJob, _: int) -> bool:
        run = Run(job, self.predictions.options(job), self.dependencies.awaited(job.job_id))
        self.runs[job.job_id] = run
        self.active += 1
        if self.profiling:
            self.profiling.arrives(run)
        if job.job_id in self.dependencies.cancelled:
            self._end(run, succeeded=False)
            return self._due(now)
        if job.begin_s is not None and job.begin_s > now:
            self.events.push(job.begin_s, Event.BEGIN, run)
        self.decider.waits(run, now)
        return self._due(now)

    def _window(self, now: float, window: Window, _: int) -> bool:
        """Save and stop jobs on nodes that are closed to them; it is no preemption."""
        if now < window.ends_at:
            for run in self._on(window.nodes):
                if not window.admits(run.job.group):
                    self._put_back(run, now)
        return self._due(now)

    def _rules(self, now: float, change: RuleChange, _: int) -> bool:
        self.decider.rules_change(change)
        if change.policy is not None:
            self.rounds.restart(self.settings.round_of(change.policy))
        return self._due(now)

    def _act(self, now: float, act: Act, _: int) -> bool:
        run = self.runs.get(act.job)
        if run is None or not run.options:  # it has ended
            return False
        if act.kind is ActKind.PAUSE and not run.paused:
            self._pause(run, now)
        elif act.kind is ActKind.RESUME and run.paused:
            run.paused = False
            self.decider.waits(run, now)
        elif act.kind in (ActKind.HOLD, ActKind.RELEASE):
            run.kept_back = act.kind is ActKind.HOLD
        elif act.kind in (ActKind.FRONT, ActKind.BACK):
            run.front = act.first if act.kind is ActKind.FRONT else 0.0
        run.waiting_view = None
        return self._due(now)

    def _change(self, now: float, run: Run, plan: int) -> bool:
        if plan != run.plan or run.option is None:
            return False
        if run.is_cut_off(now):
            self._release(run, now)
            self._end(run, succeeded=False)
            return self._due(now)
        if run.until < 1.0:
            self.charges.settle(run, now)
            run.done = run.until
            self._set_pace(run)
            return False
        option = run.option
        self._release(run, now)
        run.done, run.finished = run.until, now
        self._end(run, succeeded=True)
        self.predictions.learn(run.job, option, run.attained_gpu_s / option.config.number_gpus)
        return self._due(now)

    def _failure(self, now: float, run: Run, plan: int) -> bool:
        """An option does not run; the next one is tried while retries are left."""
        if plan != run.plan or run.option is None:
            return False
        failed = run.option
        run.moving = now  # it never made progress
        self._release(run, now)
        run.failures += 1
        left = tuple(option for option in run.options if option.key != failed.key)
        left = self.predictions.retry(run.job, left) if run.failures <= RETRIES else ()
        run.options, run.waiting_view = left, None
        if left:
            self.decider.waits(run, now)
        else:
            self._end(run, succeeded=False)
        return self._due(now)

    def _profiled(self, now: float, run: Run, plan: int) -> bool:
        if plan != run.plan or run.option is None or self.profiling is None:
            return False
        self._release(run, now)
        self.profiling.over(run)
        self.decider.waits(run, now)
        return self._due(now)

    def _end(self, run: Run, *, succeeded: bool) -> None:
        """A job has ended, and with it those that come after its success, if it failed."""
        for one in self.dependencies.ending(run, self.runs, succeeded=succeeded):
            self.open -= 1
            self.active -= 1
            if one is not run and not one.paused:
                self.decider.leaves(one)

    def _capacity(self, now: float, change: CapacityChange, _: int) -> bool:
        for number, name in enumerate(self.machines.named(change.where)):
            if number >= change.available and change.stops:
                self._lose(name, now)
            else:
                self.machines.set_ready(name, ready=number < change.available)
        self.decider.nodes_change()
        self.capacity_log.append((now, self.machines.ready_gpus))
        return self._due(now)

    def _market(self, now: float, quote: Quote, _: int) -> bool:
        if self.rented is not None:
            for run in self._on(self.rented.spot):
                self.charges.settle(run, now)  # at the price that held until now
            for name in self.rented.change(quote):
                self.rented.interruptions += self._lose(name, now)
        return self._due(now)

    def _lose(self, node: str, now: float) -> int:
        """Jobs on a lost node go back to their checkpoints; returns their number."""
        for run in (lost := self._on({node})):
            self.charges.settle(run, now)
            run.lose_since_checkpoint(now, self.settings.checkpoint_s)
            self._put_back(run, now)
        self.machines.set_ready(node, ready=False)
        return len(lost)

    def _round(self, *_: Any) -> bool:
        self.rounds.begins()
        return self.active > 0

    # decisions

    def _due(self, now: float) -> bool:
        return not self.rounds.round_s or self.rounds.due(now, active=self.active > 0)

    def _decide(self, now: float) -> None:
        self.decisions += 1
        if actions := self.decider.decide(now):
            self._apply(actions, now)
        if self.packing and self.queue:
            waiting = [(job, self.runs[job.id]) for job in self.queue.waiting()]
            for guest, option, host in guests(self.packing, waiting, now):
                self._start(guest, now, option, host.gpus, host)
        if not self.rounds.every_s:
            return
        # A job that may never start must not keep time going; one with a deadline in a market starts.
        rents = self.rented and any(run.job.deadline_s and run.options for run in self.runs.values())
        self.rounds.decided(now, active=self.active > 0, goes_on=bool(self.running or rents))

    def _apply(self, actions: Iterable[Action], now: float) -> None:
        """Apply the actions; all releases come first, as jobs may trade places."""
        placed: list[Start | Resize] = []
        for action in actions:
            if isinstance(action, Start):
                placed.append(action)
            elif isinstance(action, Preempt):
                run = self.runs[action.job]
                run.preemptions += 1
                run.preempted_at = now
                self._put_back(run, now)
            elif isinstance(action, Resize) and not self.runs[action.job].is_at(action.option, action.gpus):
                self._release(self.runs[action.job], now)
                placed.append(action)
        for action in placed:
            self._start(self.runs[action.job], now, action.option, action.gpus)
