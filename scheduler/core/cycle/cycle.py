"""One decision of a ranking policy: admission, order, gang placement, backfill, preemption.

A policy that only ranks is one key function in a `Ranked`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from knowledge.core.domain.types import Option
from scheduler.core.cycle import wait_reasons
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.placement.preemption import Evictions
from scheduler.core.types import (
    Action,
    ClusterState,
    Description,
    GpuId,
    Holding,
    Job,
    Plan,
    Preempt,
    Resize,
    Start,
    Wait,
)

Rank = tuple[float, ...]
Key = Callable[[Job, float], Rank]
AHEAD = "Jobs that were submitted earlier go first."
BEFORE = "Jobs that rank before it go first."


@dataclass(frozen=True, slots=True)
class Ranked:
    """A policy that is one key: the smallest goes first, after the larger priority.

    Ties go to the job that runs, then to the earlier submission, then to the smaller id. `steady`: time does
    not change the ranks of waiting jobs, so that the simulator may keep them from one decision to the next.
    """

    name: str
    key: Key
    rules: CycleOptions = field(default_factory=CycleOptions)
    round_s: float | None = None
    behind: str = BEFORE
    steady: bool = False
    description: Description = field(kw_only=True)

    @property
    def preempts(self) -> bool:
        return self.rules.preempts

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs in the order of their ranks, and stop lower ranked ones for them if the rules say so."""
        order = ranking(state, lambda job: self.key(job, now), self.rules)
        if not order:
            return Plan((), state.memory)
        return Plan(Cycle(state, now, self.rules, self.behind).run(order), state.memory)


def ranking(state: ClusterState, key: Callable[[Job], Rank], rules: CycleOptions) -> list[Job]:
    """Jobs as the walk meets them, best first; running ones only where they may be stopped."""

    def place(job: Job) -> tuple[float, Rank, bool, float, str]:
        rank = key(job)
        if job.holds and rules.hysteresis:
            rank = (rank[0] / (1 + rules.hysteresis), *rank[1:])
        return -job.priority, rank, job.holds is None, job.submitted_at, job.id

    return sorted(state.jobs if rules.preempts else state.waiting, key=place)


class Cycle:
    """A walk down the ranking; what it gives away is gone for those further down."""

    def __init__(self, state: ClusterState, now: float, rules: CycleOptions, behind: str = BEFORE) -> None:
        self.state, self.now, self.rules, self.behind = state, now, rules, behind
        self.free = FreeGpus(state.nodes, rules.placement)
        self.evictions: Evictions | None = None
        self.taken: set[str] = set()  # GPU models that a job further ahead waits for
        self.closed = False  # nobody may pass any more
        self.evicted: dict[str, Preempt] = {}
        self.moved: list[Resize] = []
        self.started: list[Start] = []
        self.waits: list[Wait] = []

    def run(self, order: Sequence[Job]) -> tuple[Action, ...]:
        """Decide for every job of the order."""
        if self.rules.preempts:
            evictable = [job for job in order if job.holds and self.rules.evictable(job, self.now)]
            self.evictions = Evictions(self.free, self.state.nodes, evictable)
        for job in order:
            if job.holds is None:
                self._decide(job)
            elif job.id in self.evicted:
                self._move(job, job.holds)
            elif self.evictions:
                self.evictions.keep(job)
            if not self.state.explain and self._is_over():
                break
        return (*self.evicted.values(), *self.moved, *self.started, *self.waits)

    def _is_over(self) -> bool:
        """Can nothing further down start any more?"""
        return self.closed or (not self.evictions and not self.free.count())

    def _decide(self, job: Job) -> None:
        options = acceptable(job, self.free, self.rules)
        if job.hold or not options:
            self._wait(wait_reasons.nowhere(job))
            return
        for find in (self._place, self._make_room):
            for option in () if self.closed else options:
                if option.gpu_model not in self.taken and (gpus := find(option, job)):
                    self._take(option, gpus)
                    self.started.append(Start(job.id, option, gpus))
                    return
        self._block(job, options)

    def _place(self, option: Option, job: Job) -> tuple[GpuId, ...] | None:
        return self.free.place(option, job)

    def _make_room(self, option: Option, job: Job) -> tuple[GpuId, ...] | None:
        if not self.evictions or not self.rules.may_evict(job, self.now):
            return None
        room = self.evictions.make_room(option, job)
        if room is None:
            return None
        for victim in room.victims:
            reason = f"{job.id} ranks before it and needs its GPUs; it continues from its checkpoint."
            self.evicted[victim.id] = Preempt(victim.id, reason)
        return room.gpus

    def _move(self, job: Job, holds: Holding) -> None:
        """A job that was stopped for a better one goes on elsewhere if its option fits there."""
        gpus = None if holds.option.gpu_model in self.taken else self.free.place(holds.option, job)
        if gpus and not self.closed:
            self._take(holds.option, gpus)
            self.moved.append(Resize(job.id, holds.option, gpus))
            del self.evicted[job.id]

    def _take(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        self.free.take(option, gpus)
        if self.evictions:
            self.evictions.took(option, gpus)

    def _block(self, job: Job, options: Sequence[Option]) -> None:
        passed = self.closed or any(option.gpu_model in self.taken for option in options)
        if job.avoids:
            pass  # what it keeps away from must not lie idle for it
        elif self.rules.blocks is HeadOfLine.ALL:
            self.closed = True
        elif self.rules.blocks is HeadOfLine.MODELS:
            self.taken.update(option.gpu_model for option in options)
        if self.state.explain:
            free = self.free.count_for(options[0], job.avoids)
            self._wait(wait_reasons.busy(job, options[0], free, behind=self.behind if passed else ""))

    def _wait(self, wait: Wait) -> None:
        if self.state.explain:
            self.waits.append(wait)


def acceptable(job: Job, free: FreeGpus, rules: CycleOptions) -> Sequence[Option]:
    """The options a job would take: possible on the empty cluster and close to the best of those."""
    possible = [option for option in job.options if free.could_hold(option, job.only_node, job.avoids)]
    if len(possible) < 2:
        return possible
    scores = [option.score(job.goal) for option in possible]
    limit = rules.tolerance_of(job.goal) * min(scores)
    return [option for option, score in zip(possible, scores, strict=True) if score <= limit]
