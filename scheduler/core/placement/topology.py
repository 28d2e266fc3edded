"""Victims whose stop gives a gang GPUs of one node that lie close together.

Source: Zhang et al., topology-aware preemption, 2024, and their scheduler plugin; scoring the resulting set
of GPUs, and the cost terms, are ours (docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import floor

from scheduler.core.placement.levels import TopologyLevel, closest_of, indices_of, mask_of
from scheduler.core.placement.preemption import lost_gpu_s
from scheduler.core.types import JobInfo, NodeInfo

MAX_VICTIMS = 6
MAX_SETS = 2000  # of one node; beyond, victims are dropped greedily
PRIORITY_GPU_S = 1e4  # what a step of priority weighs against lost work
Cost = Callable[[Sequence[JobInfo]], float]


@dataclass(frozen=True, slots=True)
class GangPlace:
    """GPUs of a node for a gang, once the victims are gone."""

    node: str
    level: TopologyLevel
    indices: tuple[int, ...]
    victims: tuple[JobInfo, ...] = ()


def gang_places(
    node: NodeInfo, count: int, least: TopologyLevel, candidates: Sequence[JobInfo]
) -> Iterator[GangPlace]:
    """Ways to get `count` GPUs at `least` this level; no victim of any is unnecessary.

    None if even everybody gone is not enough.
    """
    clearing = _Clearing(node, count, candidates)
    if not clearing.reaches(candidates, least):
        return
    found = False
    tried = 0
    for size in range(min(len(candidates), MAX_VICTIMS) + 1):
        for victims in islice(combinations(candidates, size), MAX_SETS - tried):
            tried += 1
            if clearing.reaches(victims, least) and not clearing.reprieves(victims):
                found = True
                yield clearing.place(victims)
    if not found:
        yield clearing.greedy(least)


def least_harm(
    node: NodeInfo, count: int, least: TopologyLevel, candidates: Sequence[JobInfo], lowest: float
) -> GangPlace | None:
    """The way to get `count` GPUs at `least` this level that harms least.

    Its victims are of the lowest classes that will do, then cost least together, then are fewest. None if
    even everybody gone is not enough. lowest: as of `disruption`.
    """
    clearing = _Clearing(node, count, candidates)
    if not clearing.reaches(candidates, least):
        return None
    classes = sorted({class_of(job) for job in candidates})
    lower = ([job for job in candidates if class_of(job) <= one] for one in classes)
    able = next((jobs for jobs in lower if clearing.reaches(jobs, least)), [])
    cost = {job.id: disruption([job], lowest) for job in able}
    able = sorted(able, key=lambda job: (cost[job.id], job.id))
    chosen: Sequence[JobInfo] = clearing.spared(able[::-1], least)
    best = _harm(chosen, cost)
    tried = 0
    for size in range(len(able)):
        if sum(cost[job.id] for job in able[:size]) > best[0]:
            break
        for victims in islice(combinations(able, size), MAX_SETS - tried):
            tried += 1
            if (harm := _harm(victims, cost)) < best and clearing.reaches(victims, least):
                best, chosen = harm, victims
    return clearing.place(chosen)


def _harm(victims: Sequence[JobInfo], cost: Mapping[str, float]) -> tuple[float, int, list[str]]:
    names = sorted(job.id for job in victims)
    return sum(map(cost.__getitem__, names)), len(names), names


def class_of(job: JobInfo) -> int:
    """Its priority class; a job that was moved to the front of it is of the same one."""
    return floor(job.priority)


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

    def greedy(self, least: TopologyLevel) -> GangPlace:
        """Stop only victims that the level needs; the dearest are spared first."""
        order = sorted(self.candidates, key=lambda job: (-job.priority, -lost_gpu_s(job), job.id))
        return self.place(self.spared(order, least))

    def spared(self, jobs: Sequence[JobInfo], least: TopologyLevel) -> list[JobInfo]:
        """Those of the jobs whom the level needs gone; the first ones are spared first."""
        victims = list(jobs)
        for job in jobs:
            rest = [victim for victim in victims if victim.id != job.id]
            if self.reaches(rest, least):
                victims = rest
        return victims

    def place(self, victims: Sequence[JobInfo]) -> GangPlace:
        level, chosen = self._level(self._without(victims))
        return GangPlace(self.node.id, level, indices_of(chosen), tuple(victims))

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
