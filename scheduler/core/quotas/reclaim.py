"""Guaranteed GPUs taken back from those that borrowed them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor

from knowledge.core.domain.types import Option
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.limits import ALL_MODELS
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.placement.preemption import Evictions, Room
from scheduler.core.quotas.ledger import Ledger
from scheduler.core.stopping import StopReason
from scheduler.core.types import (
    ClusterState,
    GpuId,
    JobInfo,
    NodeInfo,
    Plan,
    Preempt,
    Resize,
    Start,
    Wait,
)
from scheduler.states import WaitState

RULES = CycleOptions(preempts=True)
FOR_GPUS = frozenset({WaitState.BUSY, WaitState.BEHIND})


def reclaim(state: ClusterState, plan: Plan, ledger: Ledger, now: float, limit: int | None = None) -> Plan:
    """Stop borrowers for jobs whose teams are guaranteed what they wait for.

    They are served in the order of the plan, which says what each waits for. Of what a team borrows the
    lowest class goes first, then the latest start; no higher class is stopped. A job that was stopped `limit`
    times goes only where no others will do: what is guaranteed comes back.
    ledger: what teams hold after the plan; it is brought up to date.
    """
    waiting = {job.id: job for job in state.waiting}
    returns = _Returns(state, plan, ledger, now, Keeping(limit))
    for action in plan.actions:
        if isinstance(action, Wait) and action.code in FOR_GPUS and action.job in waiting:
            returns.serve(waiting[action.job])
    return with_starts(plan, returns.stopped, returns.started)


def with_starts(plan: Plan, stopped: Sequence[Preempt], started: Sequence[Start]) -> Plan:
    """The plan with more starts, and the stops that make room for them."""
    served = {start.job for start in started}
    kept = (action for action in plan.actions if action.job not in served)
    return replace(plan, actions=(*stopped, *kept, *started)) if started else plan


def may_be_stopped(state: ClusterState, plan: Plan, now: float) -> list[JobInfo]:
    """The running jobs that the plan leaves alone and that ran for long enough."""
    acted = {action.job for action in plan.actions if not isinstance(action, Wait)}
    return [job for job in state.running if job.id not in acted and RULES.evictable(job, now)]


class _Returns:
    """Borrowed GPUs that return to their owners, one waiting job after the other."""

    def __init__(self, state: ClusterState, plan: Plan, ledger: Ledger, now: float, keeping: Keeping) -> None:
        self.ledger, self.now, self._keeping = ledger, now, keeping
        self._before = state, plan
        self.able = sorted(may_be_stopped(state, plan, now), key=keeping, reverse=True)
        self.stopped: list[Preempt] = []
        self.started: list[Start] = []
        self._known: list[JobInfo] | None = None  # those that borrow, until something changes
        self._failed: set[tuple[object, ...]] = set()

    @cached_property
    def nodes(self) -> tuple[NodeInfo, ...]:
        """As the plan leaves them; looked at only if somebody may be served."""
        return after(*self._before)

    def serve(self, job: JobInfo) -> None:
        """Start the job where that frees what its team is owed, if it may stop others."""
        if not RULES.may_evict(job, self.now):
            return
        for spared in (True, False):  # those that reached the limit
            for option in job.options:
                alike = (
                    spared, option.place, option.config.tuning, job.team, job.priority, job.only_node,
                    job.avoids,
                )  # fmt: skip
                if alike in self._failed:
                    continue
                if room := self._room(job, option, spared):
                    self._carry_out(job, option, room)
                    return
                self._failed.add(alike)

    def _room(self, job: JobInfo, option: Option, spared: bool) -> Room | None:
        if not self.ledger.guarantees(job, option) or self.ledger.refusal(job, option):
            return None
        candidates = [
            other
            for other in self._borrowers()
            if not (spared and self._keeping.is_reached(other))
            and other.team != job.team
            and floor(other.priority) <= floor(job.priority)  # of no higher class
            and _gpu_model(other) == option.gpu_model
        ]
        if not candidates:
            return None
        return Evictions(FreeGpus(self.nodes), candidates, self._keeping).make_room(option, job)

    def _carry_out(self, job: JobInfo, option: Option, room: Room) -> None:
        for victim in room.victims:
            self.ledger.give(victim)
            self.stopped.append(Preempt(victim.id, StopReason.GUARANTEE))
        self.ledger.take(job, option)
        self.started.append(Start(job.id, option, room.gpus))
        gone = {victim.id for victim in room.victims}
        self.able = [other for other in self.able if other.id not in gone]
        freed = {gpu for victim in room.victims if victim.holds for gpu in victim.holds.gpus}
        self.nodes = changed(self.nodes, freed, set(room.gpus))
        self._known = None
        self._failed.clear()

    def _borrowers(self) -> list[JobInfo]:
        """The jobs on GPUs that their teams borrow, those that are stopped first last."""
        if self._known is None:
            chosen: dict[str, JobInfo] = {}
            left: dict[tuple[str, str], int] = {}
            for job in self.able:
                for model in (_gpu_model(job), ALL_MODELS):
                    borrowed = left.setdefault((job.team, model), self.ledger.borrowed(job.team, model))
                    if borrowed > 0:
                        chosen[job.id] = job
                        left[job.team, model] -= len(job.holds.gpus) if job.holds else 0
            self._known = sorted(chosen.values(), key=self._keeping)
        return self._known


@dataclass(frozen=True, slots=True)
class Keeping:
    """The order in which running jobs keep their GPUs, the longest first.

    These are jobs that were stopped as often as the limit says, then higher classes, then earlier starts.
    """

    limit: int | None

    def __call__(self, job: JobInfo) -> tuple[bool, float, float, str]:
        since = job.holds.since if job.holds else 0.0
        return not self.is_reached(job), -job.priority, since, job.id

    def is_reached(self, job: JobInfo) -> bool:
        """Was the job stopped as often as the limit says?"""
        return self.limit is not None and job.preemptions >= self.limit


def _gpu_model(job: JobInfo) -> str:
    return job.holds.option.gpu_model if job.holds else ""


def after(state: ClusterState, plan: Plan) -> tuple[NodeInfo, ...]:
    """The nodes once the plan is carried out."""
    jobs = {job.id: job for job in state.jobs}
    left: set[GpuId] = set()
    taken: set[GpuId] = set()
    for action in plan.actions:
        holds = jobs[action.job].holds
        if isinstance(action, Preempt | Resize) and holds:
            left |= set(holds.gpus)
        if isinstance(action, Start | Resize):
            taken |= set(action.gpus)
    return changed(state.nodes, left, taken)


def changed(nodes: tuple[NodeInfo, ...], left: set[GpuId], taken: set[GpuId]) -> tuple[NodeInfo, ...]:
    """The nodes after some jobs left GPUs and others took some."""
    returned: dict[str, set[int]] = defaultdict(set)
    for of, index in left:
        returned[of].add(index)
    touched = returned.keys() | {of for of, _ in taken}
    return tuple(
        replace(
            node,
            free=tuple(
                index for index in sorted({*node.free, *returned[node.id]}) if (node.id, index) not in taken
            ),
        )
        if node.id in touched
        else node
        for node in nodes
    )
