"""Policies that only rank.

A live tick and the simulator ask them through the same queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from knowledge.core.domain.types import Option
from scheduler.core.cycle.cycle import BEFORE, AcceptedOptions, Cycle
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranking import Place, Rank, Ranking
from scheduler.core.cycle.reserving import decide_in_order
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.types import Action, ClusterState, Description, GpuId, JobInfo, NodeInfo, Plan

Key = Callable[[JobInfo, float], Rank]
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A policy that is one key: the smallest goes first, after the larger priority.

    `steady`: time does not change the ranks of waiting jobs.
    `by_service`: ranks begin with the GPU-seconds received.
    """

    name: str
    key: Key
    rules: CycleOptions = field(default_factory=CycleOptions)
    round_s: float | None = None
    behind: str = BEFORE
    steady: bool = False
    by_service: bool = False
    description: Description = field(kw_only=True)

    @property
    def preempts(self) -> bool:
        return self.rules.preempts

    @property
    def incremental(self) -> bool:
        """May its queue be kept from one decision to the next?

        It may if decisions follow from waiting jobs alone, whose ranks stay; one that reserves also asks when
        running jobs end.
        """
        return self.steady and not self.preempts and self.rules.blocks is not HeadOfLine.NOTHING

    @property
    def reserves(self) -> bool:
        """Has the first job that waits a reservation, before which others fill gaps?"""
        return self.rules.blocks is HeadOfLine.RESERVATION

    @property
    def halts(self) -> bool:
        """May it be found without a decision that nothing comes of it (`Standstill`)?"""
        return self.steady and self.preempts and self.rules.placement is not Placement.ALPHA

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs in the order of their ranks.

        Lower ranked ones are stopped for them if the rules say so.
        """
        if not self.reserves:
            return Plan(RankedQueue(self, state, now).decide(now), state.memory)
        order = Ranking(state, lambda job: self.key(job, now), self.rules)
        return Plan(*decide_in_order(order, state, now, self.rules, self.behind))


class RankedQueue:
    """The ranking of a policy and the free GPUs.

    Both may be kept from one decision to the next. A live tick makes one of its snapshot and asks it once.
    The simulator keeps one if the policy is incremental, and says what changes: a decision then costs what it
    decides, and not what waits.
    """

    def __init__(
        self, policy: Ranked, state: ClusterState, now: float, accepted: AcceptedOptions | None = None
    ) -> None:
        """accepted: the options of the state's jobs, where these are known already."""
        self.policy, self.state = policy, state
        self.ranking = Ranking(state, lambda job: policy.key(job, now), policy.rules)
        # Where nobody passes, it is of no account what others than the first one would take.
        passes = policy.rules.blocks is not HeadOfLine.ALL
        self._accepted = AcceptedOptions() if passes and not self.ranking else accepted
        self._over_at: Place | None = None  # nobody from here on can start until GPUs are released
        self._left: frozenset[str] = frozenset()  # but one who comes, on these GPU models

    @cached_property
    def free(self) -> FreeGpus:
        """Made when it is needed: a queue in which nobody waits decides nothing."""
        return FreeGpus(self.state.nodes, self.policy.rules.placement)

    def add(self, job: JobInfo) -> None:
        """A job waits from now on, or waits with other options."""
        place = self.ranking.add(job)
        models = self._accepted.add(job, self.free, self.policy.rules) if self._accepted else _NONE
        if self._over_at is not None and (place < self._over_at or models & self._left):
            self._over_at = None

    def remove(self, job_id: str) -> None:
        """A job has started; the decision that gave it GPUs took them already."""
        if self.ranking.remove(job_id) and self._accepted:
            self._accepted.remove(job_id)

    def release(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """GPUs that were held with this option are free again."""
        self.free.give(option, gpus)
        self._over_at = None

    def change_nodes(self, nodes: tuple[NodeInfo, ...]) -> None:
        """These are the nodes now."""
        self.state = replace(self.state, nodes=nodes)
        self.free = FreeGpus(nodes, self.policy.rules.placement)
        self._over_at = self._accepted = None

    def decide(self, now: float) -> tuple[Action, ...]:
        """Walk down the ranking as far as anything may come of it.

        Nothing is decided again until something changes.
        """
        if self._over_at is not None or not self.ranking.jobs:
            return ()
        rules, behind = self.policy.rules, self.policy.behind
        cycle = Cycle(self.state, now, rules, behind, self.free, self._accepted)
        actions = cycle.run(self.ranking)
        if cycle.last is not None:
            self._over_at, self._left = self.ranking.place(cycle.last), cycle.left
        return actions
