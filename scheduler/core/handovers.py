"""A plan as GPUs that change hands: which job takes them, which one stops.

A plan releases all GPUs of stopped jobs before any job takes GPUs. On a real cluster a stop lasts
seconds, so each job that takes GPUs is carried out by itself, together with the stops that it causes:
nobody is stopped unless the job that gains is still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.core.cycle.wait_reasons import amount
from scheduler.core.stopping import SENTENCES, StopReason
from scheduler.core.types import ClusterState, GpuId, Holding, Plan, Preempt, Resize, Start


class Why(NamedTuple):
    """Why a job leaves its GPUs: in a word, and in a sentence for its owner."""

    reason: StopReason
    said: str

    @classmethod
    def of(cls, reason: StopReason) -> Why:
        return cls(reason, SENTENCES[reason])


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """One job and the GPUs that it takes.

    held_by: jobs that hold some of these GPUs now. victims: those of them that are stopped for this one.
    moving: the victims that are given other GPUs at once. why: it runs itself and leaves its own GPUs for
    that reason. evicted: it is a victim of a change further ahead.
    """

    takes: Start | Resize
    held_by: frozenset[str] = frozenset()
    victims: Mapping[str, Why] = field(default_factory=dict)
    moving: frozenset[str] = frozenset()
    why: Why | None = None
    evicted: bool = False

    @property
    def moves(self) -> bool:
        """Does it run, so that it has to leave its own GPUs first?"""
        return isinstance(self.takes, Resize)


def handovers(state: ClusterState, plan: Plan) -> tuple[Iterator[list[Handover]], list[Preempt]]:
    """Return the plan's handovers, best first, and the stops from which nobody gains.

    A job is stopped for the first Start that takes one of its GPUs, else for the first other job that
    moves there. A ranking policy stops nobody in vain, so that this is the job for which it chose them.
    Jobs that take no more than what its victims leave stand beside it, so that all of that is handed over at
    once. Handovers are made as they are asked for: a tick carries out few of thousands.
    """
    holdings = {job.id: job.holds for job in state.running if job.holds}
    holders = {gpu: job for job, holds in holdings.items() for gpu in holds.gpus}
    stops = [action for action in plan.actions if isinstance(action, Preempt)]
    starts = [action for action in plan.actions if isinstance(action, Start)]
    moves = [
        action
        for action in plan.actions
        if isinstance(action, Resize) and not _is_there(action, holdings.get(action.job))
    ]
    reasons = {stop.job: Why.of(stop.reason) for stop in stops}
    reasons |= {move.job: _why(move, holdings.get(move.job)) for move in moves}
    moving = frozenset(move.job for move in moves)
    taking: list[Start | Resize] = [*starts, *moves]
    held_by = {action.job: _held_by(action, holders) for action in taking}
    causes: dict[str, str] = {}
    for job, others in held_by.items():
        for holder in others:
            if holder in reasons:
                causes.setdefault(holder, job)
    victims: dict[str, list[str]] = defaultdict(list)
    for job in sorted(causes):
        victims[causes[job]].append(job)
    order = list(_causes_first(starts, moves, causes, victims))
    ahead = {action.job: place for place, action in enumerate(order)}

    def made(action: Start | Resize) -> Handover:
        own = victims.get(action.job, ())
        return Handover(
            takes=action,
            held_by=frozenset(held_by[action.job]),
            victims={job: reasons[job] for job in own},
            moving=moving.intersection(own),
            why=reasons.get(action.job),
            evicted=ahead.get(causes.get(action.job, ""), len(order)) < ahead[action.job],
        )

    idle = [stop for stop in stops if stop.job not in causes and stop.job not in moving]
    return (list(map(made, group)) for group in _side_by_side(order, held_by, causes, victims)), idle


def _held_by(action: Start | Resize, holders: Mapping[GpuId, str]) -> list[str]:
    """The other jobs that hold GPUs which the action takes, in the order of these."""
    found = dict.fromkeys([holders[gpu] for gpu in action.gpus if gpu in holders])
    found.pop(action.job, None)
    return list(found)


def _side_by_side(
    order: Iterable[Start | Resize],
    held_by: Mapping[str, Sequence[str]],
    causes: Mapping[str, str],
    victims: Mapping[str, Sequence[str]],
) -> list[list[Start | Resize]]:
    """Put each job that takes what victims of others leave beside these others.

    It takes no more than that, and stands beside the last of them.
    """
    groups: list[list[Start | Resize]] = []
    group_of: dict[str, int] = {}
    for action in order:
        others = [causes.get(job, "") for job in held_by[action.job]]
        if others and action.job not in victims and all(job in group_of for job in others):
            number = max([group_of.get(job, 0) for job in (*others, causes.get(action.job, ""))])
        else:
            number = len(groups)
            groups.append([])
        group_of[action.job] = number
        groups[number].append(action)
    return groups


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


def _why(move: Resize, holds: Holding | None) -> Why:
    """Why a running job is stopped that is given GPUs at once."""
    held = holds.option if holds else None
    if held is None or (held.gpu_model, held.gpus) == (move.option.gpu_model, move.option.gpus):
        return Why.of(StopReason.MOVE)
    gains = f"{amount(move.option)} instead of {amount(held)}"
    return Why(StopReason.RESIZE, f"The policy gives it {gains}; it goes on from its checkpoint.")


def _is_there(action: Resize, holds: Holding | None) -> bool:
    """Does the job have this already?"""
    return holds is not None and holds.option.key == action.option.key and {*holds.gpus} == {*action.gpus}


def by_node(gpus: Iterable[GpuId]) -> dict[str, list[int]]:
    """The indices of GPUs by their node's id."""
    indices: dict[str, list[int]] = defaultdict(list)
    for node_id, index in gpus:
        indices[node_id].append(index)
    return indices
