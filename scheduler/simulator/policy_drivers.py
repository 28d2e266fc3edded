"""Asking a policy.

It is given the whole state at each decision, or what changed since the last one. `Snapshots` builds the
ClusterState that the live loop would build. `IncrementalDriver` keeps the queue that a live tick makes
anew (`scheduler.core.cycle.ranked`, `scheduler.core.cycle.reserving`), where the policy allows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from scheduler.core.cycle.ranked import Ranked, RankedQueue
from scheduler.core.cycle.reserving import End, ReservingQueue
from scheduler.core.cycle.standstill import Standstill
from scheduler.core.quotas import admission
from scheduler.core.types import Action, ClusterState, ExpectedRelease, JobInfo, Plan, Policy
from scheduler.simulator.errors import PolicyBroke
from scheduler.simulator.settings import RuleChange, SimulationSettings
from scheduler.simulator.world.nodes import Machines
from scheduler.simulator.world.rented import Charges, RentedNodes
from scheduler.simulator.world.runs import Run


class PolicyDriver(Protocol):
    """Hears of every change, and decides when asked."""

    def waits(self, run: Run, now: float) -> None:
        """A job waits from now on, or waits with other options."""
        ...

    def starts(self, run: Run) -> None: ...

    def stops(self, run: Run) -> None:
        """A running job lets its GPUs go; called while it still names them."""
        ...

    def leaves(self, run: Run) -> None:
        """A waiting job has ended."""
        ...

    def nodes_change(self) -> None: ...

    def rules_change(self, change: RuleChange) -> None:
        """Other limits hold, or another policy decides, without memory."""
        ...

    def decide(self, now: float) -> Sequence[Action]: ...


def decider(
    policy: Policy,
    machines: Machines,
    charges: Charges,
    settings: SimulationSettings,
    rented: RentedNodes | None,
    careful: bool,
) -> PolicyDriver:
    """The quicker one if it is right for this policy.

    careful: jobs may have to wait for more than GPUs.
    """
    careful = careful or bool(settings.limits or settings.windows or settings.changes or settings.acts)
    if isinstance(policy, Ranked) and policy.incremental and not careful:
        if policy.reserves:
            return ReservingDriver(policy, machines, settings)
        return IncrementalDriver(RankedQueue(policy, _without_jobs(machines), 0.0), machines, settings)
    if isinstance(policy, Ranked) and policy.halts and not careful and rented is None:
        return HaltingDriver(policy, machines, charges, settings)
    return Snapshots(policy, machines, charges, settings, rented, careful)


class Snapshots:
    """The whole state at each decision."""

    def __init__(
        self,
        policy: Policy,
        machines: Machines,
        charges: Charges,
        settings: SimulationSettings,
        rented: RentedNodes | None,
        careful: bool,
    ) -> None:
        self.policy, self.machines, self.charges, self.settings = policy, machines, charges, settings
        self.careful, self.rented, self.limits = careful, rented, settings.limits
        self.waiting: dict[str, Run] = {}
        self.running: dict[str, Run] = {}
        self.memory: Mapping[str, Any] = {}

    def waits(self, run: Run, now: float) -> None:
        self.waiting[run.job.job_id] = run

    def starts(self, run: Run) -> None:
        self.running[run.job.job_id] = self.waiting.pop(run.job.job_id, run)

    def stops(self, run: Run) -> None:
        del self.running[run.job.job_id]

    def leaves(self, run: Run) -> None:
        del self.waiting[run.job.job_id]

    def nodes_change(self) -> None: ...

    def rules_change(self, change: RuleChange) -> None:
        if change.limits is not None:
            self.limits = change.limits
        if change.policy is not None:
            self.policy, self.memory = change.policy, {}

    def decide(self, now: float) -> Sequence[Action]:
        plan = self._within_limits(now) if self.careful else self.policy.decide(self.state(now), now)
        if plan.nodes and self.rented is None:
            raise PolicyBroke(f"{self.policy.name} asks for nodes of no market: {plan.nodes[0]}")
        if self.rented:
            self.rented.ask(plan.nodes)
        self.memory = plan.memory
        return plan.actions

    def _within_limits(self, now: float) -> Plan:
        seen = self.state(now)
        whole = ClusterState(
            jobs=tuple(seen.jobs), nodes=seen.nodes, memory=seen.memory, explain=False,
            limits=self.limits, windows=self.settings.windows, markets=seen.markets,
        )  # fmt: skip
        return admission.decide(self.policy, whole, now)

    def state(self, now: float) -> ClusterState:
        """The state that the live loop would show the policy now."""
        jobs = _Seen(self, now)
        markets = (self.rented.view(now),) if self.rented else ()
        return _State(
            jobs=jobs, nodes=self.machines.views(), memory=self.memory, explain=False, markets=markets
        )


class _Seen(Sequence[JobInfo]):
    """All jobs as policies see them at one moment, each made when it is looked at."""

    def __init__(self, snapshots: Snapshots, now: float) -> None:
        self.snapshots, self.now = snapshots, now

    def waiting(self) -> list[JobInfo]:
        seen, now = self.snapshots.settings.seen, self.now
        return [run.waiting_view or seen(run, now) for run in self.snapshots.waiting.values()]

    def running(self) -> list[JobInfo]:
        seen, now = self.snapshots.settings.seen, self.now
        for run in self.snapshots.running.values():
            self.snapshots.charges.settle(run, now)
        return [seen(run, now) for run in self.snapshots.running.values()]

    def releases(self) -> list[ExpectedRelease]:
        """As the running jobs' views would say, without making them."""
        return [run.release(self.now) for run in self.snapshots.running.values()]

    def __len__(self) -> int:
        return len(self.snapshots.waiting) + len(self.snapshots.running)

    def __iter__(self) -> Iterator[JobInfo]:
        return iter([*self.waiting(), *self.running()])

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State(ClusterState):
    """A state whose running jobs cost nothing unless the policy asks for them."""

    jobs: _Seen

    @property
    def waiting(self) -> Sequence[JobInfo]:
        return self.jobs.waiting()

    @property
    def running(self) -> Sequence[JobInfo]:
        return self.jobs.running()

    @property
    def releases(self) -> Sequence[ExpectedRelease]:
        return self.jobs.releases()


class HaltingDriver(Snapshots):
    """The whole state, but only where something may come of a decision."""

    def __init__(
        self, policy: Ranked, machines: Machines, charges: Charges, settings: SimulationSettings
    ) -> None:
        super().__init__(policy, machines, charges, settings, rented=None, careful=False)
        self.ranked = policy
        self.standstill: Standstill | None = None  # made when it is needed, of the nodes as they are then

    def waits(self, run: Run, now: float) -> None:
        super().waits(run, now)
        if self.standstill:
            self.standstill.add(self.settings.seen(run, now))

    def starts(self, run: Run) -> None:
        super().starts(run)
        if self.standstill:
            self.standstill.remove(run.job.job_id)
            self.standstill.take(run.held, run.gpus)

    def stops(self, run: Run) -> None:
        super().stops(run)
        if self.standstill:
            self.standstill.give(run.held, run.gpus)

    def leaves(self, run: Run) -> None:
        super().leaves(run)
        if self.standstill:
            self.standstill.remove(run.job.job_id)

    def nodes_change(self) -> None:
        self.standstill = None

    def decide(self, now: float) -> Sequence[Action]:
        seen = self.settings.seen
        for run in self.running.values():
            self.charges.settle(run, now)
        if self.standstill is None:
            self.standstill = Standstill(self.ranked, self.machines.views())
            for run in self.waiting.values():
                self.standstill.add(seen(run, now))
        wanted = self.standstill.wanted
        running = (seen(run, now) for run in self.running.values() if run.held.gpu_model in wanted)
        return () if self.standstill.holds(running, now) else self.standstill.decide(self.state(now), now)


class IncrementalDriver:
    """The changes since the last decision, for a queue that is kept."""

    packs = True  # may jobs share GPUs?

    def __init__(
        self, queue: RankedQueue | ReservingQueue, machines: Machines, settings: SimulationSettings
    ) -> None:
        self.queue, self.machines, self.settings = queue, machines, settings

    def waits(self, run: Run, now: float) -> None:
        self.queue.add(self.settings.seen(run, now))

    def starts(self, run: Run) -> None:
        self.queue.remove(run.job.job_id)

    def stops(self, run: Run) -> None:
        if run.option:
            self.queue.release(run.option, run.gpus)

    def leaves(self, run: Run) -> None:
        self.queue.remove(run.job.job_id)

    def nodes_change(self) -> None:
        self.queue.change_nodes(self.machines.views())

    def rules_change(self, change: RuleChange) -> None:
        raise PolicyBroke("rules that change need whole states")

    def decide(self, now: float) -> Sequence[Action]:
        return self.queue.decide(now)

    def waiting(self) -> list[JobInfo]:
        """Best ranked first."""
        return list(self.queue.ranking)


class ReservingDriver(IncrementalDriver):
    """The same, with the predicted ends of running jobs."""

    packs = False

    def __init__(self, policy: Ranked, machines: Machines, settings: SimulationSettings) -> None:
        self.running: dict[str, Run] = {}
        queue = ReservingQueue(
            policy.rules, _without_jobs(machines), lambda job: policy.key(job, 0.0), self._ends
        )
        super().__init__(queue, machines, settings)

    def starts(self, run: Run) -> None:
        super().starts(run)
        self.running[run.job.job_id] = run

    def stops(self, run: Run) -> None:
        super().stops(run)
        del self.running[run.job.job_id]

    def _ends(self, now: float) -> list[End]:
        return [
            (now + run.left_s(now, option), run.gpus, option)
            for run in self.running.values()
            if (option := run.option)
        ]


def _without_jobs(machines: Machines) -> ClusterState:
    return ClusterState(jobs=(), nodes=machines.views(), explain=False)
