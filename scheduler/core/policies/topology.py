"""Topology-aware preemption: close GPUs for jobs that ask for them.

They are taken from running jobs of lower priority. Larger priorities go first, then first in,
first out. A job with `guaranteed` topology starts at its level or better, or waits. One with
`best_effort` weighs level against disruption. The jobs to stop are chosen together with the
GPUs, so no job is stopped for GPUs that do not help. Only gangs on one node look at levels;
there is no preemption if free GPUs reach the level. Source: scheduler.core.placement.topology.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from knowledge.core.domain.types import Option
from scheduler.core.cycle import wait_reasons
from scheduler.core.cycle.cycle import AHEAD_BY_CLASS, acceptable
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.placement.clearings import (
    NOBODY,
    Asks,
    Clearings,
    Ways,
    best_weighed,
    closest_free,
    least_harmful,
)
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.placement.levels import Closeness, asked
from scheduler.core.placement.topology import GangPlace
from scheduler.core.stopping import outranked
from scheduler.core.types import (
    ClusterState,
    Description,
    GpuId,
    JobInfo,
    Plan,
    Preempt,
    Start,
    Topology,
    Wait,
)

ALPHA = 0.7  # of best effort: weight of the level against the disruption


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyAware:
    name: str = "topology"
    description: ClassVar[Description] = Description(
        summary="GPUs close to each other for jobs that ask for them, also by stopping running jobs.",
        order="priority, then submission; close GPUs, also by preemption",
        needs="levels, priorities",
        source="Zhang et al. 2024",
    )
    alpha: float = ALPHA
    rules: CycleOptions = field(default_factory=lambda: CycleOptions(preempts=True))
    preempts: bool = True
    round_s: float | None = 60.0

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start waiting jobs in order.

        Jobs of lower priority are stopped where that gives close GPUs.
        """
        walk = _TopologyWalk(state, now, self)
        for job in sorted(state.waiting, key=lambda job: (-job.priority, job.submitted_at, job.id)):
            walk.decide(job)
        return Plan((*walk.stopped, *walk.started, *walk.waits), state.memory)


class _TopologyWalk:
    def __init__(self, state: ClusterState, now: float, policy: TopologyAware) -> None:
        self.now, self.policy, self.explain = now, policy, state.explain
        self.free = FreeGpus(state.nodes, policy.rules.placement)
        running = sorted(state.running, key=lambda job: job.id)
        victims = [job for job in running if policy.rules.evictable(job, now)]
        self.lowest = min((job.priority for job in victims), default=0.0)
        self.clearings = {model: Clearings(pool, victims) for model, pool in self.free.pools.items()}
        self.taken: set[str] = set()  # GPU models that a job further ahead waits for
        self.failed: set[tuple[object, ...]] = set()  # requests without a place since the last stop
        self.stopped: list[Preempt] = []
        self.started: list[Start] = []
        self.waits: list[Wait] = []

    def decide(self, job: JobInfo) -> None:
        options = acceptable(job, self.free, self.policy.rules)
        if job.hold or not options:
            self._wait(wait_reasons.nowhere(job))
            return
        for option in options:
            if option.gpu_model not in self.taken and self._start(job, option):
                return
        passed = any(option.gpu_model in self.taken for option in options)
        # A job that insists must not hold up one that does not, nor one that avoids a node one that need not.
        holds_up = job.topology is not Topology.GUARANTEED and not job.avoids
        if holds_up:
            self.taken.update(option.gpu_model for option in options)
        behind = AHEAD_BY_CLASS if passed else ""
        until = wait_reasons.HELD if holds_up else wait_reasons.STOPPING
        self._wait(wait_reasons.busy(job, options[0], self.free, behind=behind, until=until))

    def _start(self, job: JobInfo, option: Option) -> bool:
        close = asked(job, option)
        if option.nodes > 1 or close.topology is Topology.NONE:
            gpus = self.free.place(option, job)
            if gpus or option.nodes > 1:
                return bool(gpus) and self._grant(job, option, gpus or ())
        alike = (
            option.place,
            option.config.tuning,
            close,
            job.priority,
            job.only_node,
            job.avoids,
            self._may_evict(job),
        )
        if alike in self.failed:
            return False
        place = self._free_place(job, option, close) or self._cleared_place(job, option, close)
        if place is None:
            self.failed.add(alike)
            return False
        for victim in place.victims:
            self._stop(victim, job)
        return self._grant(job, option, tuple((place.node, index) for index in place.indices))

    def _may_evict(self, job: JobInfo) -> bool:
        return self.policy.rules.may_evict(job, self.now)

    def _free_place(self, job: JobInfo, option: Option, close: Closeness) -> GangPlace | None:
        """Free GPUs at the job's level: the closest, then the fullest node."""
        return closest_free(self._ways(job, option, Asks(option.gpus, close.level)))

    def _cleared_place(self, job: JobInfo, option: Option, close: Closeness) -> GangPlace | None:
        """Return the place that harms least at the level, or weighs best.

        None if no job may be stopped for it.
        """
        below = job.priority if self._may_evict(job) else NOBODY
        best_effort = close.topology is Topology.BEST_EFFORT
        if best_effort:
            found = self._ways(job, option, Asks(option.gpus, close.required, below))
            return best_weighed(found, self.policy.alpha)
        asks = Asks(option.gpus, close.required, below, self.lowest)
        return least_harmful(self._ways(job, option, asks), self.lowest)

    def _ways(self, job: JobInfo, option: Option, asks: Asks) -> list[Ways]:
        unfit = self.free.pools[option.gpu_model].unfit(option, job.avoids)
        return self.clearings[option.gpu_model].ways(asks, unfit, job.only_node)

    def _stop(self, victim: JobInfo, gainer: JobInfo) -> None:
        self.failed.clear()
        if victim.holds:
            self.free.give(victim.holds.option, victim.holds.gpus)
            self.clearings[victim.holds.option.gpu_model].stopped(victim)
        self.stopped.append(Preempt(victim.id, outranked(victim.priority, gainer.priority)))

    def _grant(self, job: JobInfo, option: Option, gpus: tuple[GpuId, ...]) -> bool:
        self.free.take(option, gpus)
        self.clearings[option.gpu_model].changed({node for node, _ in gpus})
        self.started.append(Start(job.id, option, gpus))
        return True

    def _wait(self, wait: Wait) -> None:
        if self.explain:
            self.waits.append(wait)


TOPOLOGY = TopologyAware()
