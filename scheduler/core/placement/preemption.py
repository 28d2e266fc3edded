"""Preemption for a gang: the worst ranked running jobs whose GPUs make it fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import groupby
from math import inf
from typing import NamedTuple

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.placement.levels import TopologyLevel, asked
from scheduler.core.types import GpuId, Holding, JobInfo, NodeInfo

Place = tuple[str, str]  # (GPU model, node)


@dataclass(frozen=True, slots=True)
class Room:
    """Where a gang goes once its victims are gone."""

    victims: tuple[JobInfo, ...]
    gpus: tuple[GpuId, ...]


class _Harm(NamedTuple):
    """What freeing GPUs of a node costs, the smaller the better.

    best: minus the level of the best ranked victim. lost_gpu_s: of all of them.
    """

    best: float
    lost_gpu_s: float
    victims: list[JobInfo]


class Evictions:
    """Running jobs that may be stopped, by node, as a decision walks down the ranking.

    `order`: evictable jobs, best first; `level`: what is equal for jobs of equal rank. A job that
    the walk reaches keeps its GPUs (`keep`), so only jobs further down are ever victims. Of these
    the better ranked ones keep theirs as far as the newcomer leaves room; of equal ranks the dearer.
    The cost of a victim is (work lost since its last checkpoint + restart) times its GPUs, in
    GPU-seconds.
    """

    def __init__(
        self,
        free: FreeGpus,
        nodes: Iterable[NodeInfo],
        order: Sequence[JobInfo],
        level: Callable[[JobInfo], object],
    ) -> None:
        self.free = free
        self.rank = {job.id: number for number, job in enumerate(order)}
        self._equals = [list(equals) for _, equals in groupby(order, key=level)]
        self.level = {job.id: number for number, equals in enumerate(self._equals) for job in equals}
        self.by_place: dict[Place, dict[str, JobInfo]] = defaultdict(dict)
        reachable: dict[Place, list[int]] = defaultdict(list)
        for job in order:
            for model, node, index in _held(job):
                self.by_place[model, node][job.id] = job
                reachable[model, node].append(index)
        # What would be free if every evictable job were gone: it only shrinks, so failures can be remembered.
        self.reachable = FreeGpus(
            (_with(node, reachable.get((node.gpu_model, node.id), ())) for node in nodes), free.placement
        )
        self._harms: dict[Place, dict[int, _Harm]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self.rank)

    def keep(self, job: JobInfo) -> None:
        """The walk reached this running job: nobody further down may have its GPUs."""
        if job.holds and job.id in self.rank:
            self._forget(job)
            self.reachable.take(job.holds.option, job.holds.gpus)

    def keep_equals(self, job: JobInfo) -> None:
        """Keep the equals of a victim that the walk reached.

        Nobody of equal rank may be stopped for it in turn.
        """
        for equal in self._equals[self.level[job.id]]:
            self.keep(equal)

    def took(self, option: Option, gpus: Sequence[GpuId]) -> None:
        """A job was placed on free GPUs."""
        self.reachable.take(option, gpus)
        for node, _ in gpus:
            self._harms.pop((option.gpu_model, node), None)

    def make_room(self, option: Option, job: JobInfo) -> Room | None:
        """Evict the worst ranked set for which the whole gang fits, or nobody (None)."""
        if self.reachable.place(option, job) is None or asked(job, option).required > TopologyLevel.NODE:
            return None  # for closeness nobody is stopped here: the policy `topology` does that
        if self.free.placement is Placement.DISTRIBUTED and not job.only_node:
            victims = self._anywhere(option, job.avoids)
            self._evict(victims)
            gpus = self.free.place(option, job)
            return Room(tuple(victims), gpus) if gpus else None
        shares = self._least_harm(option, job)
        if shares is None:
            return None
        victims = self._reprieve(option.gpu_model, shares)
        self._evict(victims)
        pool = self.free.pools[option.gpu_model]
        gpus = tuple((n, index) for n, share in shares.items() for index in pool.pick(n, share))
        return Room(tuple(victims), gpus)

    def _least_harm(self, option: Option, job: JobInfo) -> dict[str, int] | None:
        pool = self.reachable.pools[option.gpu_model]
        unfit = pool.unfit(option, job.avoids)
        nodes = [job.only_node] if job.only_node else [n for n in pool.free if n not in unfit]
        chosen: dict[str, int] = {}
        for share, equal in groupby(self.free.shares(option)):
            fitting = [n for n in nodes if n not in chosen and len(pool.free[n]) >= share]
            count = len(list(equal))
            best = nsmallest(count, fitting, key=lambda n: (*self._harm(option.gpu_model, n, share)[:2], n))
            if len(best) < count:
                return None
            chosen.update(dict.fromkeys(best, share))
        return chosen

    def _harm(self, model: str, node: str, share: int) -> _Harm:
        """Find who would be stopped to free `share` GPUs of one node."""
        known = self._harms[model, node]
        if share not in known:
            missing = share - len(self.free.pools[model].free[node])
            victims = self._victims(self.by_place[model, node].values(), missing, node)
            best = min((self.level[job.id] for job in victims), default=inf)
            known[share] = _Harm(-best, sum(map(lost_gpu_s, victims)), victims)
        return known[share]

    def _victims(self, jobs: Collection[JobInfo], missing: int, node: str | None = None) -> list[JobInfo]:
        """Return the jobs that do not fit beside the missing GPUs.

        The GPUs are those of the node, if it is given; the best jobs keep theirs first.
        """
        room = sum(_gpus_on(job, node) for job in jobs) - missing
        victims = []
        for job in sorted(jobs, key=lambda job: self._turn(job, node)):
            if (gpus := _gpus_on(job, node)) <= room:
                room -= gpus
            else:
                victims.append(job)
        return victims

    def _turn(self, job: JobInfo, node: str | None = None) -> tuple[float, float, int]:
        return self.level[job.id], -lost_gpu_s(job) / _gpus_on(job, node), self.rank[job.id]

    def _anywhere(self, option: Option, avoids: frozenset[str]) -> list[JobInfo]:
        missing = option.gpus - self.free.count_for(option, avoids)
        unfit = self.reachable.pools[option.gpu_model].unfit(option, avoids)
        jobs = {job.id: job for (model, node), found in self.by_place.items() for job in found.values()
                if model == option.gpu_model and node not in unfit}  # fmt: skip
        return self._victims(jobs.values(), missing)

    def _reprieve(self, model: str, shares: dict[str, int]) -> list[JobInfo]:
        """Return the nodes' victims without those that the others make unnecessary.

        The best ranked are spared first.
        """
        victims = {job.id: job for n, share in shares.items() for job in self._harm(model, n, share).victims}
        pool = self.free.pools[model]
        spare = {
            n: len(pool.free[n]) - share + sum(_gpus_on(job, n) for job in victims.values())
            for n, share in shares.items()
        }
        for job in sorted(victims.values(), key=self._turn):
            if all(spare[n] >= _gpus_on(job, n) for n in shares):
                del victims[job.id]
                for n in shares:
                    spare[n] -= _gpus_on(job, n)
        return list(victims.values())

    def _evict(self, victims: Iterable[JobInfo]) -> None:
        for job in victims:
            self._forget(job)
            if job.holds:
                self.free.give(job.holds.option, job.holds.gpus)

    def _forget(self, job: JobInfo) -> None:
        del self.rank[job.id]
        for model, node, _ in _held(job):
            self.by_place[model, node].pop(job.id, None)
            self._harms.pop((model, node), None)


def lost_gpu_s(job: JobInfo) -> float:
    """The work lost by stopping a running job now, in GPU-seconds."""
    return (job.unsaved_s + job.restart_s) * len(job.holds.gpus if job.holds else ())


def _held(job: JobInfo) -> list[tuple[str, str, int]]:
    holds: Holding | None = job.holds
    return [(holds.option.gpu_model, node, index) for node, index in holds.gpus] if holds else []


def _gpus_on(job: JobInfo, node: str | None) -> int:
    gpus = job.holds.gpus if job.holds else ()
    return len(gpus) if node is None else sum(held == node for held, _ in gpus)


def _with(node: NodeInfo, indices: Sequence[int]) -> NodeInfo:
    return replace(node, free=(*node.free, *indices)) if indices else node
