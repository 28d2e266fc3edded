"""Asking a policy: with the whole state at each decision, or with what changed since the last one.

Both run the policy's own code. `Snapshots` builds the ClusterState that the live loop would build.
`IncrementalDriver` is for ranking policies whose ranks do not change while a job waits: it keeps their
cycle, its index of free GPUs and the ranking itself from one decision to the next, so that a decision costs
what it decides and not what waits. `tests/scheduler/simulator/test_deciders.py` holds the two to equal
decisions.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from scheduler.core.cycle.cycle import Cycle, Ranked
from scheduler.core.cycle.options import HeadOfLine
from scheduler.core.types import Action, ClusterState, Job, Policy, Release
from scheduler.simulator.settings import SimulationSettings
from scheduler.simulator.world.nodes import Machines
from scheduler.simulator.world.runs import Run

_Place = tuple[Any, ...]


class PolicyDriver(Protocol):
    """Hears of every change, and decides when asked."""

    def waits(self, run: Run, now: float) -> None:
        """A job waits from now on, or waits with other options."""
        ...

    def starts(self, run: Run) -> None: ...

    def stops(self, run: Run) -> None:
        """A running job lets its GPUs go; called while it still names them."""
        ...

    def nodes_change(self) -> None: ...

    def decide(self, now: float) -> Iterable[Action]: ...


def decider(
    policy: Policy, machines: Machines, prices: Mapping[str, float], settings: SimulationSettings
) -> PolicyDriver:
    """The quickest one that is right for this policy."""
    if isinstance(policy, Ranked) and can_stand(policy) and not settings.snapshots:
        return IncrementalDriver(policy, machines, settings)
    return Snapshots(policy, machines, prices, settings)


def can_stand(policy: Ranked) -> bool:
    """Do its decisions follow from a ranking of waiting jobs that time does not change?"""
    return policy.steady and not policy.preempts and policy.rules.blocks is not HeadOfLine.NOTHING


class Snapshots:
    """The whole state at each decision."""

    def __init__(
        self, policy: Policy, machines: Machines, prices: Mapping[str, float], settings: SimulationSettings
    ) -> None:
        self.policy, self.machines, self.prices, self.settings = policy, machines, prices, settings
        self.waiting: dict[str, Run] = {}
        self.running: dict[str, Run] = {}
        self.memory: Mapping[str, Any] = {}

    def waits(self, run: Run, now: float) -> None:
        self.waiting[run.job.job_id] = run

    def starts(self, run: Run) -> None:
        self.running[run.job.job_id] = self.waiting.pop(run.job.job_id, run)

    def stops(self, run: Run) -> None:
        del self.running[run.job.job_id]

    def nodes_change(self) -> None: ...

    def decide(self, now: float) -> Iterable[Action]:
        plan = self.policy.decide(self.state(now), now)
        self.memory = plan.memory
        return plan.actions

    def state(self, now: float) -> ClusterState:
        """The state that the live loop would show the policy now."""
        jobs = _Seen(self, now)
        return _State(jobs=jobs, nodes=self.machines.views(), memory=self.memory, explain=False)


class _Seen(Sequence[Job]):
    """All jobs as policies see them at one moment, each made when it is looked at."""

    def __init__(self, snapshots: Snapshots, now: float) -> None:
        self.snapshots, self.now = snapshots, now

    def waiting(self) -> list[Job]:
        seen, now = self.snapshots.settings.seen, self.now
        return [run.waiting_view or seen(run, now) for run in self.snapshots.waiting.values()]

    def running(self) -> list[Job]:
        seen, prices, now = self.snapshots.settings.seen, self.snapshots.prices, self.now
        for run in self.snapshots.running.values():
            run.advance(now, prices[run.held.gpu_model])
        return [seen(run, now) for run in self.snapshots.running.values()]

    def releases(self) -> list[Release]:
        """As the running jobs' views would say, without making them."""
        return [run.release(self.now) for run in self.snapshots.running.values()]

    def __len__(self) -> int:
        return len(self.snapshots.waiting) + len(self.snapshots.running)

    def __iter__(self) -> Iterator[Job]:
        return iter([*self.waiting(), *self.running()])

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State(ClusterState):
    """A state whose running jobs cost nothing unless the policy asks for them."""

    jobs: _Seen

    @property
    def waiting(self) -> Sequence[Job]:
        return self.jobs.waiting()

    @property
    def running(self) -> Sequence[Job]:
        return self.jobs.running()

    @property
    def releases(self) -> Sequence[Release]:
        return self.jobs.releases()


class IncrementalDriver:
    """The ranking and the cycle of a policy, kept up to date."""

    def __init__(self, policy: Ranked, machines: Machines, settings: SimulationSettings) -> None:
        self.policy, self.machines, self.settings = policy, machines, settings
        self.cycle = self._new_cycle()
        self.queue: list[tuple[_Place, Job]] = []
        self.places: dict[str, _Place] = {}
        self.over_at: _Place | None = None  # where nobody further down could start; None once GPUs are freed

    def waits(self, run: Run, now: float) -> None:
        self._leave(run.job.job_id)
        job = self.settings.seen(run, now)
        place = (-job.priority, self.policy.key(job, now), job.submitted_at, job.id)
        self.places[job.id] = place
        insort(self.queue, (place, job), key=lambda entry: entry[0])
        if self.over_at is not None and place < self.over_at:
            self.over_at = None

    def starts(self, run: Run) -> None:
        """The cycle took the GPUs itself."""
        self._leave(run.job.job_id)

    def waiting(self) -> list[Job]:
        """Best ranked first."""
        return [job for _, job in self.queue]

    def stops(self, run: Run) -> None:
        self.cycle.free.give(run.held, run.gpus)
        self.over_at = None

    def nodes_change(self) -> None:
        self.cycle = self._new_cycle()
        self.over_at = None

    def decide(self, now: float) -> Iterable[Action]:
        if not self.queue or self.over_at is not None:
            return ()
        self.cycle.begin(now)
        jobs = _Jobs(self.queue)
        actions = self.cycle.run(jobs)
        self.over_at = self.queue[jobs.met - 1][0] if self.cycle._is_over() else None
        return actions

    def _leave(self, job_id: str) -> None:
        place = self.places.pop(job_id, None)
        if place is not None:
            del self.queue[bisect_left(self.queue, place, key=lambda entry: entry[0])]

    def _new_cycle(self) -> _StandingCycle:
        state = ClusterState(jobs=(), nodes=self.machines.views(), explain=False)
        return _StandingCycle(state, 0.0, self.policy.rules)


class _StandingCycle(Cycle):
    """A cycle that goes through its ranking again and again; the free GPUs carry over."""

    def begin(self, now: float) -> None:
        self.now = now
        self.closed = False
        self.taken = set()
        self.started = []

    def _is_over(self) -> bool:
        return super()._is_over() or self.taken >= self.free.pools.keys()


class _Jobs(Sequence[Job]):
    """The jobs of a ranking without copying it; `met` of them were looked at."""

    def __init__(self, queue: list[tuple[_Place, Job]]) -> None:
        self.queue = queue
        self.met = 0

    def __iter__(self) -> Iterator[Job]:
        for _, job in self.queue:
            self.met += 1
            yield job

    def __len__(self) -> int:
        return len(self.queue)

    def __getitem__(self, index: Any) -> Any:
        return self.queue[index][1]
