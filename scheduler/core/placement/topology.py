"""Victims whose stop gives a gang GPUs of one node that lie close together.

Source: Zhang et al., topology-aware preemption, 2024, and their scheduler plugin; scoring the resulting set
of GPUs, and the cost terms, are ours (docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from scheduler.core.placement.levels import TopologyLevel, closest_of, indices_of, mask_of
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
    clearing = _Clearing(node, count, candidates)
    if not clearing.reaches(candidates, least):
        return
    found = False
    tried = 0
    for size in range(min(len(candidates), MAX_VICTIMS) + 1):
        if found and fewest:
            return
        for victims in islice(combinations(candidates, size), MAX_SETS - tried):
            tried += 1
            if clearing.reaches(victims, least) and not clearing.reprieves(victims):
                found = True
                yield clearing.spot(victims)
    if not found:
        yield clearing.greedy(least)


class _Clearing:
    """A node of which some jobs might go; sets of GPUs are bits of a number."""

    def __init__(self, node: NodeInfo, count: int, candidates: Sequence[JobInfo]) -> None:
        self.node, self.count, self.candidates = node, count, candidates
        self.free = mask_of(node.free)
        self.held = {job.id: mask_of(_held(job, node)) for job in candidates}
        self._closest: dict[int, tuple[TopologyLevel, int]] = {}

    def reaches(self, victims: Sequence[JobInfo], least: TopologyLevel) -> bool:
        """Are there so many GPUs at the level once these jobs are gone?"""
        gpus = self._without(victims)
        return gpus.bit_count() >= self.count and self._level(gpus)[0] >= least

    def reprieves(self, victims: Sequence[JobInfo]) -> bool:
        """Would the GPUs lie as close although one of the victims stayed?"""
        gpus = self._without(victims)
        level = self._level(gpus)[0]
        fewer = (gpus & ~self.held[job.id] | self.free for job in victims)
        return any(rest.bit_count() >= self.count and self._level(rest)[0] >= level for rest in fewer)

    def greedy(self, least: TopologyLevel) -> Spot:
        """Stop only victims that the level needs; the dearest are spared first."""
        victims = list(self.candidates)
        for job in sorted(victims, key=lambda job: (-job.priority, -lost_gpu_s(job), job.id)):
            rest = [victim for victim in victims if victim.id != job.id]
            if self.reaches(rest, least):
                victims = rest
        return self.spot(victims)

    def spot(self, victims: Sequence[JobInfo]) -> Spot:
        level, chosen = self._level(self._without(victims))
        return Spot(self.node.id, level, indices_of(chosen), tuple(victims))

    def _without(self, victims: Sequence[JobInfo]) -> int:
        """The GPUs that are free once the victims are gone."""
        gpus = self.free
        for job in victims:
            gpus |= self.held[job.id]
        return gpus

    def _level(self, gpus: int) -> tuple[TopologyLevel, int]:
        known = self._closest.get(gpus)
        if known is None:
            known = self._closest[gpus] = closest_of(self.node.sites, gpus, self.count)
        return known


def disruption(victims: Sequence[JobInfo], lowest: float) -> float:
    """Return the GPU-seconds lost by stopping these jobs, with a priority charge.

    The charge is for each step of priority above the lowest.
    """
    return sum(lost_gpu_s(job) + PRIORITY_GPU_S * (job.priority - lowest) for job in victims)


def _held(job: JobInfo, node: NodeInfo) -> list[int]:
    return [index for name, index in (job.holds.gpus if job.holds else ()) if name == node.id]
