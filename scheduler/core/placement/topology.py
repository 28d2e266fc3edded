"""Whom to stop so that a gang gets GPUs of one node that lie close together.

Source: Zhang et al., topology-aware preemption, 2024, and their scheduler plugin; scoring the resulting set
of GPUs, and the cost terms, are ours (docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from scheduler.core.placement.levels import TopologyLevel, closest
from scheduler.core.placement.preemption import lost_gpu_s
from scheduler.core.types import JobInfo, NodeInfo

MAX_VICTIMS = 6
MAX_SETS = 2000  # of one node; beyond, victims are dropped greedily
PRIORITY_GPU_S = 1e4  # what a step of priority weighs against lost work
Cost = Callable[[Sequence[JobInfo]], float]


@dataclass(frozen=True, slots=True)
class Spot:
    """GPUs of a node for a gang, once the victims are gone."""

    node: str
    level: TopologyLevel
    indices: tuple[int, ...]
    victims: tuple[JobInfo, ...] = ()


def spots(
    node: NodeInfo, count: int, least: TopologyLevel, candidates: Sequence[JobInfo], *, fewest: bool = False
) -> Iterator[Spot]:
    """Ways to get `count` GPUs at `least` this level; no victim of any is unnecessary.

    fewest: only those with as few victims as possible. None if even everybody gone is not enough.
    """
    if len(node.free) + sum(_on(job, node) for job in candidates) < count:
        return
    every = _spot(node, count, candidates)
    if every.level < least:
        return
    found = False
    tried = 0
    for size in range(min(len(candidates), MAX_VICTIMS) + 1):
        if found and fewest:
            return
        for victims in islice(combinations(candidates, size), MAX_SETS - tried):
            tried += 1
            if _enough(node, victims, count):
                spot = _spot(node, count, victims)
                if spot.level >= least and not _reprieves(node, count, spot):
                    found = True
                    yield spot
    if not found:
        yield _greedy(node, count, least, every)


def disruption(victims: Sequence[JobInfo], lowest: float) -> float:
    """Return the GPU-seconds lost by stopping these jobs, with a priority charge.

    The charge is for each step of priority above the lowest.
    """
    return sum(lost_gpu_s(job) + PRIORITY_GPU_S * (job.priority - lowest) for job in victims)


def _greedy(node: NodeInfo, count: int, least: TopologyLevel, spot: Spot) -> Spot:
    """From everybody gone, let the dearest stay while the level holds."""
    victims = list(spot.victims)
    for job in sorted(victims, key=lambda job: (-job.priority, -lost_gpu_s(job), job.id)):
        rest = [victim for victim in victims if victim.id != job.id]
        if _enough(node, rest, count) and _spot(node, count, rest).level >= least:
            victims = rest
    return _spot(node, count, victims)


def _reprieves(node: NodeInfo, count: int, spot: Spot) -> bool:
    """Would the spot be as close although one of its victims stayed?"""
    for job in spot.victims:
        rest = [victim for victim in spot.victims if victim.id != job.id]
        if _enough(node, rest, count) and _spot(node, count, rest).level >= spot.level:
            return True
    return False


def _spot(node: NodeInfo, count: int, victims: Sequence[JobInfo]) -> Spot:
    indices = {*node.free, *(index for job in victims for index in _held(job, node))}
    level, chosen = closest(node.sites, indices, count)
    return Spot(node.id, level, chosen, tuple(victims))


def _enough(node: NodeInfo, victims: Sequence[JobInfo], count: int) -> bool:
    return len(node.free) + sum(_on(job, node) for job in victims) >= count


def _held(job: JobInfo, node: NodeInfo) -> list[int]:
    return [index for name, index in (job.holds.gpus if job.holds else ()) if name == node.id]


def _on(job: JobInfo, node: NodeInfo) -> int:
    return len(_held(job, node))
