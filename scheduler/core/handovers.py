"""A plan as GPUs that change hands: which job takes them, which one stops.

A plan releases all GPUs of stopped jobs before any job takes GPUs. On a real cluster a stop lasts
seconds, so each job that takes GPUs is carried out by itself, together with the stops that it causes:
nobody is stopped unless the job that gains is still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.core.cycle.wait_reasons import amount
from scheduler.core.types import ClusterState, GpuId, Plan, Preempt, Resize, Start

MOVES = "It moves to other GPUs and goes on from its checkpoint."


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """One job and the GPUs that it takes.

    held_by: jobs that hold some of these GPUs now. victims: those of them that are stopped for this one,
    with the reason. moving: the victims that are given other GPUs at once. why: it runs itself and leaves its
    own GPUs for that reason. evicted: it is a victim of a change further ahead.
    """

    takes: Start | Resize
    held_by: frozenset[str] = frozenset()
    victims: Mapping[str, str] = field(default_factory=dict)
    moving: frozenset[str] = frozenset()
    why: str = ""
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
    reasons |= {move.job: _why(move, state) for move in moves}
    causes: dict[str, str] = {}
    taking: list[Start | Resize] = [*starts, *moves]
    for action in taking:
        for gpu in action.gpus:
            holder = holders.get(gpu)
            if holder in reasons and holder != action.job:
                causes.setdefault(holder, action.job)
    moving = frozenset(move.job for move in moves)
    victims: dict[str, list[str]] = defaultdict(list)
    for job in sorted(causes):
        victims[causes[job]].append(job)
    found: list[Handover] = []
    placed: set[str] = set()
    for action in _causes_first(starts, moves, causes, victims):
        found.append(
            Handover(
                takes=action,
                held_by=frozenset(holders[gpu] for gpu in action.gpus if gpu in holders) - {action.job},
                victims={job: reasons[job] for job in victims[action.job]},
                moving=moving.intersection(victims[action.job]),
                why=reasons.get(action.job, ""),
                evicted=causes.get(action.job) in placed,
            )
        )
        placed.add(action.job)
    idle = [Preempt(job, reasons[job]) for job in reasons if job not in causes and job not in moving]
    return found, idle


def _causes_first(
    starts: Sequence[Start],
    moves: Sequence[Resize],
    causes: Mapping[str, str],
    victims: Mapping[str, Sequence[str]],
) -> Iterator[Start | Resize]:
    """Yield each job before its victims that move; jobs may change places."""
    left = {move.job: move for move in moves}
    roots = [move.job for move in moves if move.job not in causes]
    yield from starts
    ahead = [job for start in starts for job in victims.get(start.job, ())]
    for job in (*ahead, *roots, *(move.job for move in moves)):
        line = [job]
        while line:
            if move := left.pop(line.pop(0), None):
                yield move
                line += victims.get(move.job, ())


def _why(move: Resize, state: ClusterState) -> str:
    """Why a running job is stopped that is given GPUs at once."""
    held = next((job.holds.option for job in state.running if job.id == move.job and job.holds), None)
    if held is None or (held.gpu_model, held.gpus) == (move.option.gpu_model, move.option.gpus):
        return MOVES
    gains = f"{amount(move.option)} instead of {amount(held)}"
    return f"The policy gives it {gains}; it goes on from its checkpoint."


def _is_there(action: Resize, state: ClusterState) -> bool:
    """Does the job have this already?"""
    holds = next((job.holds for job in state.running if job.id == action.job), None)
    return holds is not None and holds.option.key == action.option.key and _same(holds.gpus, action.gpus)


def _same(one: tuple[GpuId, ...], other: tuple[GpuId, ...]) -> bool:
    return set(one) == set(other)
