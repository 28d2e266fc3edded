"""A plan as GPUs that change hands: who takes which, and who is stopped for whom.

A plan releases all GPUs of stopped jobs before any job takes GPUs. On a real cluster a stop lasts
seconds, so each job that takes GPUs is carried out by itself, together with the stops that it causes:
nobody is stopped unless the job that gains is still there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.core.types import ClusterState, GpuId, Plan, Preempt, Resize, Start

MOVES = "It moves to other GPUs and goes on from its checkpoint."


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """One job and the GPUs that it takes.

    held_by: jobs that hold some of these GPUs now. victims: those of them that are stopped for this one,
    with the reason. evicted: it runs, is stopped for another job, or for one that such a stop moves, and
    moves itself.
    """

    takes: Start | Resize
    held_by: frozenset[str] = frozenset()
    victims: Mapping[str, str] = field(default_factory=dict)
    evicted: bool = False

    @property
    def moves(self) -> bool:
        """Does it run, so that it has to leave its own GPUs first?"""
        return isinstance(self.takes, Resize)


def handovers(state: ClusterState, plan: Plan) -> tuple[list[Handover], list[Preempt]]:
    """Return the plan's handovers, best first, and the stops from which nobody gains.

    A job is stopped for the first Start that takes one of its GPUs, else for the first other job that
    moves there. A ranking policy stops nobody in vain, so that this is the job for which it chose them.
    """
    holders = {gpu: job.id for job in state.running if job.holds for gpu in job.holds.gpus}
    reasons = {action.job: action.reason for action in plan.actions if isinstance(action, Preempt)}
    starts = [action for action in plan.actions if isinstance(action, Start)]
    moves = [action for action in plan.actions if isinstance(action, Resize) and not _is_there(action, state)]
    reasons |= {move.job: MOVES for move in moves}
    taking: list[Start | Resize] = [*starts, *moves]
    causes: dict[str, Start | Resize] = {}
    for action in taking:
        for gpu in action.gpus:
            holder = holders.get(gpu)
            if holder in reasons and holder != action.job:
                causes.setdefault(holder, action)
    found = [
        Handover(
            takes=action,
            held_by=frozenset(holders[gpu] for gpu in action.gpus if gpu in holders) - {action.job},
            victims={job: reasons[job] for job, cause in sorted(causes.items()) if cause is action},
            evicted=_for_a_start(action.job, causes),
        )
        for action in taking
    ]
    moving = {move.job for move in moves}
    idle = [Preempt(job, reasons[job]) for job in reasons if job not in causes and job not in moving]
    return found, idle


def _for_a_start(job: str, causes: Mapping[str, Start | Resize]) -> bool:
    """Is it stopped for a job that starts, or for one that moves because it was?"""
    seen = set[str]()
    while job not in seen and (cause := causes.get(job)):
        if isinstance(cause, Start):
            return True
        seen.add(job)
        job = cause.job
    return False


def _is_there(action: Resize, state: ClusterState) -> bool:
    """Does the job have this already?"""
    holds = next((job.holds for job in state.running if job.id == action.job), None)
    return holds is not None and holds.option.key == action.option.key and _same(holds.gpus, action.gpus)


def _same(one: tuple[GpuId, ...], other: tuple[GpuId, ...]) -> bool:
    return set(one) == set(other)
