"""Guaranteed GPUs taken back from those that borrowed them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from knowledge.core.domain.types import Option
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.limits import ALL_MODELS
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.placement.preemption import Evictions, Room
from scheduler.core.quotas.ledger import Ledger
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
OWED = "Its GPUs are guaranteed to another team, whose job needs them; this one goes on from its checkpoint."
FOR_GPUS = frozenset({WaitState.BUSY, WaitState.BEHIND})


def reclaim(state: ClusterState, plan: Plan, ledger: Ledger, now: float) -> Plan:
    """Stop borrowers for jobs whose teams are guaranteed what they wait for.

    Of what a team borrows the lowest class goes first, then the latest start; no higher class is stopped.
    ledger: what teams hold after the plan; it is brought up to date.
    """
    waiting = {job.id: job for job in state.waiting}
    acted = {action.job for action in plan.actions if not isinstance(action, Wait)}
    told = [action.job for action in plan.actions if isinstance(action, Wait) and action.code in FOR_GPUS]
    silent = [name for name, job in waiting.items() if name not in acted and not job.hold]
    owed = [waiting[name] for name in (told if state.explain else silent) if name in waiting]
    stopped: list[Preempt] = []
    started: list[Start] = []
    nodes = _after(state, plan)
    for job in owed:
        borrowers = list(_borrowers(state, ledger, job, acted, now))
        found = _room(job, borrowers, nodes, ledger, now)
        if found is None:
            continue
        option, room = found
        for victim in room.victims:
            ledger.give(victim)
            stopped.append(Preempt(victim.id, OWED))
        ledger.take(job, option)
        started.append(Start(job.id, option, room.gpus))
        acted |= {job.id, *(victim.id for victim in room.victims)}
        freed = {gpu for victim in room.victims if victim.holds for gpu in victim.holds.gpus}
        nodes = _changed(nodes, freed, set(room.gpus))
    if not started:
        return plan
    served = {start.job for start in started}
    kept = (action for action in plan.actions if action.job not in served)
    return replace(plan, actions=(*stopped, *kept, *started))


def _room(
    job: JobInfo, borrowers: list[JobInfo], nodes: tuple[NodeInfo, ...], ledger: Ledger, now: float
) -> tuple[Option, Room] | None:
    """Where the job goes, and what is stopped for it.

    None if that does not free enough, or is not owed.
    """
    if not borrowers or not RULES.may_evict(job, now):
        return None
    for option in job.options:
        if not ledger.guarantees(job, option) or ledger.refusal(job, option):
            continue
        candidates = [other for other in borrowers if _gpu_model(other) == option.gpu_model]
        evictions = Evictions(FreeGpus(nodes), nodes, candidates, _turn)
        if room := evictions.make_room(option, job):
            return option, room
    return None


def _borrowers(
    state: ClusterState, ledger: Ledger, job: JobInfo, acted: set[str], now: float
) -> Iterator[JobInfo]:
    """The jobs on GPUs that their teams borrow, those that are stopped last first."""
    able = [
        other
        for other in state.running
        if other.id not in acted and other.team != job.team and other.priority <= job.priority
        and RULES.evictable(other, now)
    ]  # fmt: skip
    chosen: dict[str, JobInfo] = {}
    for team, model in sorted(
        {(other.team, model) for other in able for model in (_gpu_model(other), ALL_MODELS)}
    ):
        borrowed = ledger.borrowed(team, model)
        for other in sorted(able, key=_turn, reverse=True):
            if borrowed > 0 and other.team == team and model in (_gpu_model(other), ALL_MODELS):
                chosen[other.id] = other
                borrowed -= len(other.holds.gpus) if other.holds else 0
    yield from sorted(chosen.values(), key=_turn)


def _turn(job: JobInfo) -> tuple[int, float, str]:
    """Higher classes and earlier starts keep their GPUs longer."""
    return -job.priority, job.holds.since if job.holds else 0.0, job.id


def _gpu_model(job: JobInfo) -> str:
    return job.holds.option.gpu_model if job.holds else ""


def _after(state: ClusterState, plan: Plan) -> tuple[NodeInfo, ...]:
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
    return _changed(state.nodes, left, taken)


def _changed(nodes: tuple[NodeInfo, ...], left: set[GpuId], taken: set[GpuId]) -> tuple[NodeInfo, ...]:
    """The nodes after some jobs left GPUs and others took some."""
    return tuple(
        replace(
            node,
            free=tuple(
                index
                for index in sorted({*node.free, *(index for of, index in left if of == node.id)})
                if (node.id, index) not in taken
            ),
        )
        for node in nodes
    )
