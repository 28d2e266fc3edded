"""Asking the policy within a play: of the whole state, or of what changed.

As in the simulator (`scheduler.simulator.policy_drivers`), but of jobs and nodes of a live snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from knowledge.core.domain.types import Option
from scheduler.core.ahead.lives import PlayedJob
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.cycle.ranked import Ranked, RankedQueue
from scheduler.core.eligibility import eligible, off_nodes, spot_nodes
from scheduler.core.quotas import admission
from scheduler.core.types import Action, ClusterState, GpuId, JobInfo, NodeInfo

COARSE = 0.03  # of the time looked ahead: how far apart decisions about a whole state may be


class Driver(Protocol):
    """Hears of every change, and decides when asked."""

    coarse: float  # the least time between decisions, as a share of the time looked ahead

    def waits(self, life: PlayedJob) -> None:
        """A job waits from now on, or may start under other terms."""
        ...

    def starts(self, life: PlayedJob) -> None:
        """A job holds GPUs from now on."""
        ...

    def leaves(self, life: PlayedJob) -> None:
        """A job lets its GPUs go; called while it still names them."""
        ...

    def decide(self, now: float) -> Iterable[Action]: ...


def driver(given: PlayInput) -> Driver:
    """The quicker one if it is right for this policy and these limits."""
    state, policy = given.state, given.policy
    plain = not state.limits and not state.windows and not any(job.array_limit for job in state.jobs)
    if isinstance(policy, Ranked) and policy.incremental and not policy.reserves and plain:
        return KeptRanking(policy, state)
    return WholeState(given)


class WholeState:
    """The whole state at each decision, as the live loop shows it."""

    coarse = COARSE

    def __init__(self, given: PlayInput) -> None:
        self.given = given
        self.memory: Mapping[str, Any] = given.state.memory
        self.waiting: dict[str, PlayedJob] = {}
        self.running: dict[str, PlayedJob] = {}
        self.nodes = Nodes(given.state.nodes)

    def waits(self, life: PlayedJob) -> None:
        self.waiting[life.info.id] = life

    def starts(self, life: PlayedJob) -> None:
        self.waiting.pop(life.info.id, None)
        self.running[life.info.id] = life
        if life.info.holds:
            self.nodes.take(life.info.holds.option, life.info.holds.gpus)

    def leaves(self, life: PlayedJob) -> None:
        if life.info.holds:
            del self.running[life.info.id]
            self.nodes.give(life.info.holds.option, life.info.holds.gpus)

    def decide(self, now: float) -> Iterable[Action]:
        if not self.waiting and not (self.given.policy.preempts and self.running):
            return ()
        waiting = [life.info for life in self.waiting.values()]
        running = [life.seen(now) for life in self.running.values()]
        state = replace(
            self.given.state,
            jobs=(*waiting, *running),
            nodes=self.nodes.views(),
            memory=self.memory,
            explain=False,
            solved={},
            used=None if self.memory else self.given.state.used,
        )
        plan = admission.decide(self.given.policy, state, now)
        self.memory = plan.memory
        return plan.actions


class KeptRanking:
    """The ranking and the free GPUs, kept and told what changes."""

    coarse = 0.0

    def __init__(self, policy: Ranked, state: ClusterState) -> None:
        self.queue = RankedQueue(policy, replace(state, jobs=(), explain=False), 0.0)
        self.not_yet: dict[str, JobInfo] = {}
        self.spot = spot_nodes(state)

    def waits(self, life: PlayedJob) -> None:
        job = off_nodes(life.info, self.spot)
        if job.held or job.awaits or job.begins_at is not None:
            self.not_yet[job.id] = job
        else:
            self.queue.add(job)

    def starts(self, life: PlayedJob) -> None:
        self.queue.remove(life.info.id)

    def leaves(self, life: PlayedJob) -> None:
        if life.info.holds:
            self.queue.release(life.info.holds.option, life.info.holds.gpus)

    def decide(self, now: float) -> Iterable[Action]:
        if self.not_yet:
            shown, _ = eligible(replace(self.queue.state, jobs=tuple(self.not_yet.values())), now)
            for job in shown.jobs:
                self.queue.add(self.not_yet.pop(job.id))
        return self.queue.decide(now)


class Nodes:
    """The nodes' free GPUs, as policies see them."""

    def __init__(self, nodes: Iterable[NodeInfo]) -> None:
        self._views = list(nodes)
        self._free = [set(node.free) for node in self._views]
        self._parts: dict[str, list[int]] = {}  # a node has a part for each of its GPU models
        for number, node in enumerate(self._views):
            self._parts.setdefault(node.id, []).append(number)
        self._stale: set[int] = set()

    def take(self, option: Option, gpus: Iterable[GpuId]) -> None:
        for part, index in self._each(option, gpus):
            self._free[part].discard(index)

    def give(self, option: Option, gpus: Iterable[GpuId]) -> None:
        for part, index in self._each(option, gpus):
            self._free[part].add(index)

    def views(self) -> tuple[NodeInfo, ...]:
        for part in self._stale:
            self._views[part] = replace(self._views[part], free=tuple(sorted(self._free[part])))
        self._stale.clear()
        return tuple(self._views)

    def _each(self, option: Option, gpus: Iterable[GpuId]) -> Iterator[tuple[int, int]]:
        """The part of a node that each GPU lies in, of the nodes that are there."""
        for node, index in gpus:
            for part in self._parts.get(node, ()):
                if self._views[part].gpu_model == option.gpu_model:
                    self._stale.add(part)
                    yield part, index
