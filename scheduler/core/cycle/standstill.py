"""Moments at which nothing comes of a decision, found without making it.

Between events nothing may come of most rounds: no waiting job fits what is free, and of the running jobs that
rank behind it too few may be stopped. Waiting jobs that would take the same options are as one here, for the
best ranked of them has most behind it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

from knowledge.core.domain.types import Option
from scheduler.core.cycle.cycle import AcceptedOptions
from scheduler.core.cycle.ranked import Ranked, RankedQueue
from scheduler.core.cycle.ranking import Place, Ranking
from scheduler.core.placement.fit import FreeGpus, Placement, Shares
from scheduler.core.types import Action, ClusterState, GpuId, Holding, JobInfo, NodeInfo, Topology

_Wish = tuple[object, ...]
LEAST_S, MOST_S = 60.0, 7680.0  # for which a standstill is looked for at once
ROUNDING_S = 1.0
_NOBODY = ClusterState(jobs=(), nodes=())


class _Alike(NamedTuple):
    """Waiting jobs that would take the same.

    One of them stands for all; places: of all of them, best first.
    """

    job: JobInfo
    options: Sequence[Option]
    places: list[Place]


class Standstill:
    """The waiting jobs and the free GPUs, kept from one decision to the next.

    It is right for a policy in which waiting jobs keep their ranks (`Ranked.steady`), and for placements that
    look at nothing but GPUs. Nodes that change need a new one.
    """

    def __init__(self, policy: Ranked, nodes: tuple[NodeInfo, ...]) -> None:
        self.policy = policy
        self.free = FreeGpus(nodes, policy.rules.placement)
        self.accepted = AcceptedOptions()
        self._alike: dict[_Wish, _Alike] = {}
        self._kept: dict[str, tuple[_Wish, Place]] = {}  # of each waiting job
        self._tried = False  # is it known that none of them fits what is free?
        self._until = -inf  # it holds for sure, unless jobs or GPUs come
        self._ahead_s = LEAST_S

    def add(self, job: JobInfo) -> None:
        """A job waits from now on, or waits with other options."""
        self.remove(job.id)
        self.accepted.add(job, self.free, self.policy.rules)
        options = self.accepted.options[job.id]
        if job.hold or not options:
            return
        wish, place = _wish(job, options), self._ranking(0.0).place(job)
        if wish not in self._alike:
            self._alike[wish] = _Alike(job, options, [])
            self._tried = False
        insort(self._alike[wish].places, place)
        self._until = -inf
        self._kept[job.id] = wish, place

    def remove(self, job_id: str) -> None:
        """A job waits no more."""
        if job_id in self.accepted.options:
            self.accepted.remove(job_id)
        if job_id in self._kept:
            wish, place = self._kept.pop(job_id)
            places = self._alike[wish].places
            del places[bisect_left(places, place)]
            if not places:
                del self._alike[wish]

    def take(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """A job holds these GPUs from now on."""
        self.free.take(option, gpus)
        self._until = -inf

    def give(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """They are free again."""
        self.free.give(option, gpus)
        self._tried, self._until = False, -inf

    @property
    def wanted(self) -> frozenset[str]:
        """The GPU models that waiting jobs would take."""
        return frozenset(option.gpu_model for alike in self._alike.values() for option in alike.options)

    def holds(self, running: Iterable[JobInfo], now: float) -> bool:
        """Is it sure that nothing comes of a decision now?

        running: at least those on GPU models that are wanted; they are looked at only if they have to be.
        """
        if now <= self._until:
            return True
        if not self._tried and any(map(self._starts, self._alike.values())):
            return False
        self._tried = True
        seen = [job for job in running if job.holds and job.holds.option.gpu_model in self.free.pools]
        return self._holds_on(seen, now) or self._is_shut(self._evictable(seen, now))

    def decide(self, state: ClusterState, now: float) -> tuple[Action, ...]:
        """The policy's decision, of what is known here already."""
        least: dict[str, int] = {}
        for alike in self._alike.values():
            for option in alike.options:
                least[option.gpu_model] = min(option.gpus, least.get(option.gpu_model, option.gpus))
        self.accepted.least = least
        queue = RankedQueue(self.policy, state, now, self.accepted)
        queue.free = self.free.copy()
        return queue.decide(now)

    def _holds_on(self, running: Iterable[JobInfo], now: float) -> bool:
        """Does it hold for a while, however much of that time each running job is given?

        Jobs by service get behind no further than that.
        """
        if not self.policy.by_service or self.policy.rules.segment_s is not None:
            return False
        then = now + self._ahead_s
        if self._is_shut(self._evictable(running, then, then - now + ROUNDING_S)):
            self._until, self._ahead_s = then, min(self._ahead_s * 2, MOST_S)
            return True
        self._ahead_s = max(self._ahead_s / 2, LEAST_S)
        return False

    def _evictable(
        self, running: Iterable[JobInfo], now: float, received_s: float = 0.0
    ) -> list[tuple[Place, Holding]]:
        """Jobs that may be stopped, or could be with so much more time received."""
        ranking, rules = self._ranking(now), self.policy.rules
        may = rules.stoppable if received_s else rules.evictable
        return [
            (ranking.place(job, len(job.holds.gpus) * received_s), job.holds)
            for job in running
            if job.holds and may(job, now)
        ]

    def _is_shut(self, evictable: list[tuple[Place, Holding]]) -> bool:
        """Do the evictable jobs behind each waiting job hold too little for it?"""
        evictable.sort(key=itemgetter(0))
        behind: dict[str, _Behind] = {}  # by GPU model
        for alike in sorted(self._alike.values(), key=lambda alike: alike.places[0], reverse=True):
            while evictable and evictable[-1][0] > alike.places[0]:
                _, holds = evictable.pop()
                if (model := holds.option.gpu_model) not in behind:
                    behind[model] = _Behind(self.free.pools[model].free)
                behind[model].add(holds.gpus)
            if any(self._might_fit(option, behind.get(option.gpu_model)) for option in alike.options):
                return False
        return True

    def _starts(self, alike: _Alike) -> bool:
        return any(self.free.place(option, alike.job) for option in alike.options)

    def _ranking(self, now: float) -> Ranking:
        return Ranking(_NOBODY, lambda job: self.policy.key(job, now), self.policy.rules)

    def _might_fit(self, option: Option, behind: _Behind | None) -> bool:
        """Would an option fit if all jobs behind were gone, on whichever nodes it may run?"""
        if behind is None:
            return False
        if self.free.placement is Placement.DISTRIBUTED:
            return option.gpus <= behind.at_least.total()
        return behind.fits(self.free.shares(option))


class _Behind:
    """The GPUs of a model that are free or held by jobs behind.

    free: as bits of a number, by node. at_least: how many nodes have so many of them.
    """

    __slots__ = ("at_least", "counts")

    def __init__(self, free: Mapping[str, int]) -> None:
        self.counts = {node: gpus.bit_count() for node, gpus in free.items()}
        self.at_least = Counter[int]()
        for count, nodes in Counter(self.counts.values()).items():
            for number in range(1, count + 1):
                self.at_least[number] += nodes

    def add(self, gpus: Collection[GpuId]) -> None:
        for node, _ in gpus:
            if node in self.counts:
                self.counts[node] += 1
                self.at_least[self.counts[node]] += 1

    def fits(self, shares: Shares) -> bool:
        """Are there nodes for all shares, the largest first?"""
        return all(self.at_least[share] >= number for number, share in enumerate(shares, 1))


def _wish(job: JobInfo, options: Sequence[Option]) -> _Wish:
    """All that decides where a job fits.

    One that asks for close GPUs is like no other.
    """
    close = job.id if job.topology is not Topology.NONE else ""
    return close, job.only_node, job.avoids, *(
        (
            option.gpu_model, option.config.tuning, option.nodes, option.gpus, option.price_per_gpu_hour,
            option.gpu_memory_bytes,
        )
        for option in options
    )  # fmt: skip
