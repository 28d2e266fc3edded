"""Preemption for a gang: the cheapest set of running jobs that rank lower."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import groupby
from math import inf

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.types import GpuId, Holding, Job, Node

Place = tuple[str, str]  # (GPU model, node)


@dataclass(frozen=True, slots=True)
class Room:
    """Where a gang goes once its victims are gone."""

    victims: tuple[Job, ...]
    gpus: tuple[GpuId, ...]


class Evictions:
    """Running jobs that may be stopped, by node, while a decision walks down the ranking.

    `order`: evictable jobs, best first. A job that the walk reaches keeps its GPUs (`keep`), so only jobs
    further down are ever victims. The cost of a victim is (work lost since its last checkpoint + restart)
    times its GPUs, in GPU-seconds; at equal cost the worst ranked goes.
    """

    def __init__(self, free: FreeGpus, nodes: Iterable[Node], order: Sequence[Job]) -> None:
        self.free = free
        self.rank = {job.id: number for number, job in enumerate(order)}
        self.by_place: dict[Place, dict[str, Job]] = defaultdict(dict)
        reachable: dict[Place, list[int]] = defaultdict(list)
        for job in order:
            for model, node, index in _held(job):
                self.by_place[model, node][job.id] = job
                reachable[model, node].append(index)
        # What would be free if every evictable job were gone: it only shrinks, so failures can be remembered.
        self.reachable = FreeGpus(
            (_with(node, reachable.get((node.gpu_model, node.id), ())) for node in nodes), free.placement
        )
        self._costs: dict[Place, dict[int, tuple[float, float, list[Job]]]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self.rank)

    def keep(self, job: Job) -> None:
        """The walk reached this running job: nobody further down may have its GPUs."""
        if job.holds and job.id in self.rank:
            self._forget(job)
            self.reachable.take(job.holds.option, job.holds.gpus)

    def took(self, option: Option, gpus: Sequence[GpuId]) -> None:
        """A job was placed on free GPUs."""
        self.reachable.take(option, gpus)
        for node, _ in gpus:
            self._costs.pop((option.gpu_model, node), None)

    def make_room(self, option: Option, job: Job) -> Room | None:
        """Evict the cheapest set for which the whole gang fits, or nobody (None)."""
        if self.reachable.place(option, job) is None:
            return None
        if self.free.placement is Placement.DISTRIBUTED and not job.only_node:
            victims = self._anywhere(option, job.avoids)
            self._evict(victims)
            gpus = self.free.place(option, job)
            return Room(tuple(victims), gpus) if gpus else None
        shares = self._cheapest(option, job)
        if shares is None:
            return None
        victims = self._reprieve(option.gpu_model, shares)
        self._evict(victims)
        pool = self.free.pools[option.gpu_model]
        gpus = tuple((n, index) for n, share in shares.items() for index in pool.lowest(n, share))
        return Room(tuple(victims), gpus)

    def _cheapest(self, option: Option, job: Job) -> dict[str, int] | None:
        pool = self.reachable.pools[option.gpu_model]
        unfit = pool.unfit(option.config.method, job.avoids)
        nodes = [job.only_node] if job.only_node else [n for n in pool.free if n not in unfit]
        chosen: dict[str, int] = {}
        for share, equal in groupby(self.free.shares(option)):
            fitting = [n for n in nodes if n not in chosen and len(pool.free[n]) >= share]
            count = len(list(equal))
            best = nsmallest(count, fitting, key=lambda n: (*self._cost(option.gpu_model, n, share)[:2], n))
            if len(best) < count:
                return None
            chosen.update(dict.fromkeys(best, share))
        return chosen

    def _cost(self, model: str, node: str, share: int) -> tuple[float, float, list[Job]]:
        """(GPU-seconds lost, minus the best rank among the victims, victims) for `share` GPUs on one node."""
        known = self._costs[model, node]
        if share not in known:
            missing = share - len(self.free.pools[model].free[node])
            victims = _until(missing, self._victims(self.by_place[model, node].values(), node), node)
            best = min((self.rank[job.id] for job in victims), default=inf)
            known[share] = (sum(map(lost_gpu_s, victims)), -best, victims)
        return known[share]

    def _victims(self, jobs: Iterable[Job], node: str | None = None) -> list[Job]:
        """Cheapest per GPU that becomes free (there) first."""
        return sorted(
            jobs, key=lambda job: (lost_gpu_s(job) / _gpus_on(job, node), -self.rank[job.id], job.id)
        )

    def _anywhere(self, option: Option, avoids: frozenset[str]) -> list[Job]:
        missing = option.gpus - self.free.count_for(option, avoids)
        unfit = self.reachable.pools[option.gpu_model].unfit(option.config.method, avoids)
        jobs = {job.id: job for (model, node), found in self.by_place.items() for job in found.values()
                if model == option.gpu_model and node not in unfit}  # fmt: skip
        return _until(missing, self._victims(jobs.values()), None)

    def _reprieve(self, model: str, shares: dict[str, int]) -> list[Job]:
        """The nodes' victims without those that the others make unnecessary, dearest first."""
        victims = {job.id: job for n, share in shares.items() for job in self._cost(model, n, share)[2]}
        pool = self.free.pools[model]
        spare = {
            n: len(pool.free[n]) - share + sum(_gpus_on(job, n) for job in victims.values())
            for n, share in shares.items()
        }
        for job in sorted(victims.values(), key=lambda job: (-lost_gpu_s(job), self.rank[job.id])):
            if all(spare[n] >= _gpus_on(job, n) for n in shares):
                del victims[job.id]
                for n in shares:
                    spare[n] -= _gpus_on(job, n)
        return list(victims.values())

    def _evict(self, victims: Iterable[Job]) -> None:
        for job in victims:
            self._forget(job)
            if job.holds:
                self.free.give(job.holds.option, job.holds.gpus)

    def _forget(self, job: Job) -> None:
        del self.rank[job.id]
        for model, node, _ in _held(job):
            self.by_place[model, node].pop(job.id, None)
            self._costs.pop((model, node), None)


def lost_gpu_s(job: Job) -> float:
    """The work lost by stopping a running job now, in GPU-seconds."""
    return (job.unsaved_s + job.restart_s) * len(job.holds.gpus if job.holds else ())


def _held(job: Job) -> list[tuple[str, str, int]]:
    holds: Holding | None = job.holds
    return [(holds.option.gpu_model, node, index) for node, index in holds.gpus] if holds else []


def _gpus_on(job: Job, node: str | None) -> int:
    gpus = job.holds.gpus if job.holds else ()
    return len(gpus) if node is None else sum(held == node for held, _ in gpus)


def _until(missing: int, jobs: Iterable[Job], node: str | None) -> list[Job]:
    """As many of the jobs, in order, as it takes to free the missing GPUs."""
    victims: list[Job] = []
    for job in jobs:
        if missing <= 0:
            break
        victims.append(job)
        missing -= _gpus_on(job, node)
    for job in victims[:-1]:
        if _gpus_on(job, node) <= -missing:  # a larger one that came later makes it unnecessary
            victims.remove(job)
            missing += _gpus_on(job, node)
    return victims


def _with(node: Node, indices: Sequence[int]) -> Node:
    return replace(node, free=(*node.free, *indices)) if indices else node
