"""Preemption for a gang: the worst ranked running jobs whose GPUs make it fit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from math import inf
from typing import NamedTuple

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.placement.levels import TopologyLevel, asked
from scheduler.core.types import GpuId, JobInfo

Place = tuple[str, str]  # (GPU model, node)


@dataclass(frozen=True, slots=True)
class Room:
    """Where a gang goes once its victims are gone."""

    victims: tuple[JobInfo, ...]
    gpus: tuple[GpuId, ...]


class _Victim(NamedTuple):
    """A job that may be stopped, with what it holds on a node.

    Sorted, the first ones keep their GPUs: better ranked, then dearer for each of them.
    """

    level: int
    gain: float  # minus the GPU-seconds lost by stopping it, for each GPU here
    rank: int
    gpus: int
    lost_gpu_s: float
    job: JobInfo


class _Harm(NamedTuple):
    """The cost of freeing GPUs of a node, the smaller the better.

    best: minus the level of the best ranked victim. lost_gpu_s: of all of them.
    """

    best: float
    lost_gpu_s: float
    victims: list[JobInfo]


class _Cheapest:
    """The nodes of a GPU model by the harm of freeing so many of their GPUs.

    `changed`: nodes to be looked at anew. Entries of the heap are stale where the harm has changed since, and
    dropped as they come up.
    """

    __slots__ = ("changed", "heap")

    def __init__(self, nodes: Iterable[str]) -> None:
        self.changed = set(nodes)
        self.heap: list[tuple[float, float, str]] = []  # (_Harm's figures, node)


class Evictions:
    """Running jobs that may be stopped, by node, as a decision walks down the ranking.

    `order`: evictable jobs, best first; `level`: what is equal for jobs of equal rank. A job that
    the walk reaches keeps its GPUs (`keep`), so only jobs further down are ever victims. Of these
    the better ranked ones keep theirs as far as the newcomer leaves room; of equal ranks the dearer.
    The cost of a victim is (work lost since its last checkpoint + restart) times its GPUs, in
    GPU-seconds. Of most decisions nothing comes of evictions, so the nodes are looked at only once
    so many GPUs are free or held by jobs further down as an option takes.
    """

    def __init__(
        self,
        free: FreeGpus,
        order: Sequence[JobInfo],
        level: Callable[[JobInfo], object],
    ) -> None:
        self.free, self._level = free, level
        # Of the jobs that may still be stopped.
        self.rank = {job.id: number for number, job in enumerate(order)}
        self._order = order
        self._held_of: Counter[str] = Counter()  # GPUs of each model that jobs further down hold
        for job in order:
            if job.holds:
                self._held_of[job.holds.option.gpu_model] += len(job.holds.gpus)
        self._laid_out = False

    def _lay_out(self) -> None:
        """Say who holds what on each node, of those that the walk has not reached."""
        self._laid_out = True
        order = [job for job in self._order if job.id in self.rank]
        self._equals = [list(equals) for _, equals in groupby(order, key=self._level)]
        self.level = {job.id: number for number, equals in enumerate(self._equals) for job in equals}
        self._held = {job.id: _held(job) for job in order}
        self._on: dict[Place, list[_Victim]] = defaultdict(list)
        for job in order:
            for place, indices in self._held[job.id].items():
                self._on[place].append(self._victim(job, len(indices)))
        for victims in self._on.values():
            victims.sort()
        # The GPUs free if every evictable job were gone: they only become fewer, so failures are remembered.
        self.reachable = self.free.copy()
        for job in order:
            if job.holds:
                self.reachable.give(job.holds.option, job.holds.gpus)
        self._harms: dict[Place, dict[int, _Harm]] = defaultdict(dict)
        self._cheapest: dict[str, dict[int, _Cheapest]] = defaultdict(dict)  # by GPU model and share

    def keep(self, job: JobInfo) -> None:
        """The walk reached this running job: nobody further down may have its GPUs."""
        if job.holds and job.id in self.rank:
            self._forget(job)
            if self._laid_out:
                self.reachable.take(job.holds.option, job.holds.gpus)

    def keep_equals(self, job: JobInfo) -> None:
        """Keep the equals of a victim that the walk reached.

        Nobody of equal rank may be stopped for it in turn.
        """
        for equal in self._equals[self.level[job.id]]:
            self.keep(equal)

    def took(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """A job was placed on free GPUs."""
        if not self._laid_out:
            return
        self.reachable.take(option, gpus)
        for node in {node for node, _ in gpus}:
            self._changed(option.gpu_model, node)

    def make_room(self, option: Option, job: JobInfo) -> Room | None:
        """Evict the worst ranked set for which the whole gang fits, or nobody (None)."""
        model = option.config.gpu_model
        if option.config.number_gpus > self.free.count(model) + self._held_of[model]:
            return None
        if not self._laid_out:
            self._lay_out()
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
        gpus = tuple(gpu for n, share in shares.items() for gpu in pool.pick(n, share))
        return Room(tuple(victims), gpus)

    def _least_harm(self, option: Option, job: JobInfo) -> dict[str, int] | None:
        pool = self.reachable.pools[option.gpu_model]
        unfit = pool.unfit(option, job.avoids)
        if job.only_node:
            unfit |= pool.free.keys() - {job.only_node}
        chosen: dict[str, int] = {}
        for share, equal in groupby(self.free.shares(option)):
            count = len(list(equal))
            best = self._first(option.gpu_model, share, count, unfit | chosen.keys())
            if len(best) < count:
                return None
            chosen.update(dict.fromkeys(best, share))
        return chosen

    def _first(self, model: str, share: int, count: int, excluded: Collection[str]) -> list[str]:
        """Up to `count` nodes where freeing so many GPUs harms least, ties by id."""
        free = self.reachable.pools[model].free
        if share not in self._cheapest[model]:
            self._cheapest[model][share] = _Cheapest(free)
        cheapest = self._cheapest[model][share]
        for node in cheapest.changed:
            if free.get(node, 0).bit_count() >= share:
                heappush(cheapest.heap, (*self._harm(model, node, share)[:2], node))
        cheapest.changed.clear()
        seen: dict[str, tuple[float, float, str]] = {}
        chosen: list[str] = []
        while cheapest.heap and len(chosen) < count:
            entry = heappop(cheapest.heap)
            node = entry[-1]
            harm = self._harms[model, node].get(share)
            if harm is None or harm[:2] != entry[:2] or node in seen:
                continue
            seen[node] = entry
            if node not in excluded:
                chosen.append(node)
        for entry in seen.values():
            heappush(cheapest.heap, entry)
        return chosen

    def _harm(self, model: str, node: str, share: int) -> _Harm:
        """Find who would be stopped to free `share` GPUs of one node."""
        known = self._harms[model, node]
        if share not in known:
            missing = share - self.free.pools[model].count(node)
            victims = _victims(self._on[model, node], missing)
            best = min((victim.level for victim in victims), default=inf)
            lost_gpu_s = sum(victim.lost_gpu_s for victim in victims)
            known[share] = _Harm(-best, lost_gpu_s, [victim.job for victim in victims])
        return known[share]

    def _victim(self, job: JobInfo, gpus: int) -> _Victim:
        lost = lost_gpu_s(job)
        return _Victim(self.level[job.id], -lost / gpus, self.rank[job.id], gpus, lost, job)

    def _anywhere(self, option: Option, avoids: frozenset[str]) -> list[JobInfo]:
        missing = option.gpus - self.free.count_for(option, avoids)
        pool = self.reachable.pools[option.gpu_model]
        fit = pool.free.keys() - pool.unfit(option, avoids)  # not those that are not ready
        jobs = {victim.job.id: victim.job for (model, node), found in self._on.items() for victim in found
                if model == option.gpu_model and node in fit}  # fmt: skip
        return [victim.job for victim in _victims(self._in_turn(jobs.values()), missing)]

    def _in_turn(self, jobs: Iterable[JobInfo]) -> list[_Victim]:
        """The jobs with all that they hold, those first that keep it."""
        return sorted(self._victim(job, len(job.holds.gpus)) for job in jobs if job.holds)

    def _reprieve(self, model: str, shares: dict[str, int]) -> list[JobInfo]:
        """Return the nodes' victims without those that the others make unnecessary.

        The best ranked are spared first. On one node nobody is: who did not fit there does not fit now.
        """
        victims = {job.id: job for n, share in shares.items() for job in self._harm(model, n, share).victims}
        if len(shares) == 1:
            return list(victims.values())
        held = {job.id: Counter(node for node, _ in job.holds.gpus) for job in victims.values() if job.holds}
        pool = self.free.pools[model]
        spare = {
            n: pool.count(n) - share + sum(gpus[n] for gpus in held.values()) for n, share in shares.items()
        }
        for victim in self._in_turn(victims.values()):
            gpus = held[victim.job.id]
            if all(spare[n] >= gpus[n] for n in shares):
                del victims[victim.job.id]
                for n in shares:
                    spare[n] -= gpus[n]
        return list(victims.values())

    def _evict(self, victims: Iterable[JobInfo]) -> None:
        for job in victims:
            self._forget(job)
            if job.holds:
                self.free.give(job.holds.option, job.holds.gpus)

    def _forget(self, job: JobInfo) -> None:
        del self.rank[job.id]
        if job.holds:
            self._held_of[job.holds.option.gpu_model] -= len(job.holds.gpus)
        for model, node in self._held[job.id] if self._laid_out else ():
            self._on[model, node] = [found for found in self._on[model, node] if found.job is not job]
            self._changed(model, node)

    def _changed(self, model: str, node: str) -> None:
        self._harms.pop((model, node), None)
        for cheapest in self._cheapest[model].values():
            cheapest.changed.add(node)


def lost_gpu_s(job: JobInfo) -> float:
    """The work lost by stopping a running job now, in GPU-seconds."""
    return (job.unsaved_s + job.restart_s) * len(job.holds.gpus if job.holds else ())


def _victims(in_turn: Sequence[_Victim], missing: int) -> list[_Victim]:
    """Return those whose GPUs do not fit beside the missing ones."""
    if missing <= 0:
        return []
    room = sum(victim.gpus for victim in in_turn) - missing
    victims = []
    for victim in in_turn:
        if victim.gpus <= room:
            room -= victim.gpus
        else:
            victims.append(victim)
    return victims


def _held(job: JobInfo) -> dict[Place, list[int]]:
    """The GPUs that a job holds, by place."""
    found: dict[Place, list[int]] = {}
    if job.holds:
        model = job.holds.option.gpu_model
        for node, index in job.holds.gpus:
            found.setdefault((model, node), []).append(index)
    return found
