"""Where a gang fits: all of its GPUs at once, or not at all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from enum import StrEnum
from functools import cache
from operator import itemgetter

from knowledge.core.domain.types import Option
from scheduler.core.placement.gpu_index import NONE, FreeGpuIndex
from scheduler.core.placement.levels import TopologyLevel, asked
from scheduler.core.types import GpuId, JobInfo, NodeInfo, Topology

Shares = tuple[int, ...]  # GPUs on each node, largest first


# All that decides whether a gang fits: GPU model, tuning, nodes, GPUs, price and memory of the option, the
# job's only node, the nodes that it avoids, and the topology level.
Request = tuple[
    str, str, int, int, float | None, float | None, str | None, frozenset[str], TopologyLevel
]  # fmt: skip


class Placement(StrEnum):
    """The rule by which a gang takes one of the places that fit.

    Only the first three keep to the option's nodes.
    """

    BEST_FIT = "best-fit"  # the fullest nodes, so that large holes stay for large gangs
    SPREAD = "spread"  # the emptiest nodes
    ALPHA = "alpha-evolve"  # the highest score over GPUs and host memory
    CONSOLIDATED = "consolidated"  # the fewest nodes: whole ones, and the rest on the fullest that fits
    DISTRIBUTED = "distributed"  # any free GPUs, as if the cluster were one large node


# Python 3.11 takes as long to find a member of an Enum as for a call, and each placement asks for several.
_SPREAD, _ALPHA, _DISTRIBUTED = Placement.SPREAD, Placement.ALPHA, Placement.DISTRIBUTED
_CONSOLIDATED, _NODE = Placement.CONSOLIDATED, TopologyLevel.NODE
_ANY_TOPOLOGY, _GUARANTEED = Topology.NONE, Topology.GUARANTEED


class FreeGpus:
    """Placement on GPUs that are free now.

    It is an index of the ready nodes' free GPUs that a decision uses up. Placing costs about
    log(nodes). A request that failed once is remembered until GPUs are given back.
    """

    def __init__(self, nodes: Iterable[NodeInfo], placement: Placement = Placement.BEST_FIT) -> None:
        self.placement = placement
        groups: dict[str, list[NodeInfo]] = defaultdict(list)
        for node in nodes:
            if node.ready:
                groups[node.gpu_model].append(node)
        self.pools = {model: FreeGpuIndex(group) for model, group in groups.items()}
        self._failed: set[Request] = set()
        self._holdable: dict[Request, bool] = {}

    def copy(self) -> FreeGpus:
        """The same free GPUs, to be used up apart; quicker than from the nodes."""
        other = copy(self)
        other.pools = {model: pool.copy() for model, pool in self.pools.items()}
        other._failed = set(self._failed)
        return other

    def count(self, gpu_model: str | None = None) -> int:
        """Free GPUs of a model, or of all."""
        if gpu_model is None:
            return sum([pool.total for pool in self.pools.values()])
        return self.pools[gpu_model].total if gpu_model in self.pools else 0

    @property
    def used_up(self) -> bool:
        """Is no GPU free?"""
        for pool in self.pools.values():  # noqa: SIM110  `any` takes three times as long, at every decision
            if pool.total:
                return False
        return True

    def count_for(self, option: Option, avoids: frozenset[str] = NONE) -> int:
        """Free GPUs on which the option could run."""
        pool = self.pools.get(option.config.gpu_model)
        return pool.free_for(option, avoids) if pool else 0

    def closest_level(self, option: Option, avoids: frozenset[str] = NONE) -> TopologyLevel | None:
        """How close free GPUs lie for the largest share of the option, at best.

        None: there are too few on any node.
        """
        pool, share = self.pools.get(option.gpu_model), self.shares(option)[0]
        if pool is None:
            return None
        unfit = pool.unfit(option, avoids)
        return max((pool.level(node, share) for node in pool.able(share) if node not in unfit), default=None)

    def could_hold(self, option: Option, job: JobInfo | None = None) -> bool:
        """Would the option fit if every ready node were empty?

        GPUs must lie as close as the job requires. Nodes that the job avoids are left out.
        """
        level = asked(job, option).required if job and job.topology is _GUARANTEED else _NODE
        request = _request(option, job, level)
        known = self._holdable.get(request)
        if known is None:
            pool = self.pools.get(option.gpu_model)
            known = pool is not None and self._holds(pool, option, job, request[-1])
            self._holdable[request] = known
        return known

    def possible(self, job: JobInfo) -> list[Option]:
        """The job's options that would fit if every ready node were empty, in their order."""
        if job.topology is _GUARANTEED:
            return [option for option in job.options if self.could_hold(option, job)]
        known = self._holdable
        return [
            option
            for option in job.options
            # Most are known from jobs before it, so that a call less counts.
            if known.get(_request(option, job, _NODE)) or self.could_hold(option, job)
        ]

    def _holds(self, pool: FreeGpuIndex, option: Option, job: JobInfo | None, level: TopologyLevel) -> bool:
        shares = self.shares(option)
        only_node, avoids = (job.only_node, job.avoids) if job else (None, NONE)
        return self._fit(shares, pool.sizes(option, only_node, avoids | pool.never(level, shares[0])))

    def suited(self, option: Option) -> frozenset[str] | None:
        """Return the nodes on which the option may run; None if all may.

        They are those of its GPU model.
        """
        pool = self.pools.get(option.gpu_model)
        return pool.suited(option) if pool else None

    def place(self, option: Option, job: JobInfo | None = None) -> tuple[GpuId, ...] | None:
        """Return GPUs for the whole gang, or None.

        They lie as close as the job asks, if that is possible or required. Ties go to the smaller node id,
        then to the lower index.
        """
        config = option.config
        pool = self.pools.get(config.gpu_model)
        if pool is None or pool.total < config.number_gpus:
            return None
        if job is None or job.topology is _ANY_TOPOLOGY or not (pool.sited or job.topology is _GUARANTEED):
            return self._place(pool, option, job, _NODE)
        close = asked(job, option)
        if close.level > close.required and pool.sited:
            gpus = self._place(pool, option, job, close.level)
            if gpus:
                return gpus
        return self._place(pool, option, job, close.required)

    def place_sparing(self, option: Option, job: JobInfo, spared: FreeGpus) -> tuple[GpuId, ...] | None:
        """As `place`, on GPUs of which as few as possible are free in `spared`.

        They lie as close as the job asks if that takes no more of them. Only `best-fit` chooses so.
        """
        gpus = self.place(option, job)
        pool, others = self.pools.get(option.gpu_model), spared.pools.get(option.gpu_model)
        if not gpus or self.placement is not Placement.BEST_FIT or pool is None or others is None:
            return gpus
        close = asked(job, option)
        found = [
            (sum([others.is_free(gpu) for gpu in placed]), placed)
            for level in ((close.level, close.required) if pool.sited else (_NODE,))
            if (placed := self._place_sparing(pool, others, option, job, level))
        ]
        return min(found, key=itemgetter(0))[1] if found else gpus

    def _place_sparing(
        self, pool: FreeGpuIndex, others: FreeGpuIndex, option: Option, job: JobInfo, level: TopologyLevel
    ) -> tuple[GpuId, ...] | None:
        unfit = pool.unfit(option, job.avoids)
        if job.only_node:
            unfit |= pool.free.keys() - {job.only_node}
        chosen: dict[str, tuple[GpuId, ...]] = {}
        for share in self._shares(pool, option):
            node = pool.least_of(others, share, unfit.union(chosen), level)
            if node is None:
                return None
            chosen[node] = pool.pick_sparing(others, node, share, level)
        return tuple([gpu for picked in chosen.values() for gpu in picked])

    def _place(
        self, pool: FreeGpuIndex, option: Option, job: JobInfo | None, level: TopologyLevel
    ) -> tuple[GpuId, ...] | None:
        if self._failed and _request(option, job, level) in self._failed:
            return None
        shares = self._on_nodes(pool, option, job, level)
        if shares is None:
            if self.placement is not _ALPHA:  # whose fit depends on the job's memory
                self._failed.add(_request(option, job, level))
            return None
        if len(shares) == 1:
            return pool.pick(*shares[0])
        return tuple([gpu for node, share in shares for gpu in pool.pick(node, share)])

    def take(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """Mark GPUs of the option's model as held, where their nodes are ready."""
        if pool := self.pools.get(option.config.gpu_model):
            pool.take(gpus)

    def withhold(self, gpus: Collection[GpuId]) -> None:
        """Mark GPUs of any model as held."""
        for pool in self.pools.values():
            pool.take(tuple(gpus))

    def give(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """Mark GPUs of the option's model as free, where their nodes are ready."""
        if pool := self.pools.get(option.config.gpu_model):
            pool.give(gpus)
            if self._failed:
                self._failed.clear()

    def shares(self, option: Option) -> Shares:
        """How many GPUs the gang takes on each of its nodes."""
        return self._shares(self.pools.get(option.gpu_model), option)

    def _shares(self, pool: FreeGpuIndex | None, option: Option) -> Shares:
        if self.placement is _DISTRIBUTED:
            return (option.config.number_gpus,)
        if self.placement is _CONSOLIDATED and pool and (largest := pool.largest):
            return _whole_nodes(option.config.number_gpus, largest)
        return equal_shares(option)

    def _on_nodes(
        self, pool: FreeGpuIndex, option: Option, job: JobInfo | None, level: TopologyLevel
    ) -> list[tuple[str, int]] | None:
        shares, unfit = self._shares(pool, option), pool.unfit(option, job.avoids if job else NONE)
        if level > _NODE:
            unfit |= pool.looser(level, shares[0])
        if job and job.only_node:
            fits = self._fit(shares, [pool.count(job.only_node)])
            return [(job.only_node, sum(shares))] if fits and job.only_node not in unfit else None
        if self.placement is _DISTRIBUTED:
            return pool.anywhere(sum(shares), unfit)
        if self.placement is _ALPHA:
            return _best_scores(pool, shares, job.host_memory_bytes if job else 0.0, unfit)
        emptiest = self.placement is _SPREAD
        if len(shares) == 1:
            nodes = pool.choose(shares[0], 1, unfit, emptiest=emptiest)
            return [(nodes[0], shares[0])] if nodes else None
        chosen: list[tuple[str, int]] = []
        for share, count in _counted(shares):
            excluded = unfit.union([node for node, _ in chosen]) if chosen else unfit
            nodes = pool.choose(share, count, excluded, emptiest=emptiest)
            if nodes is None:
                return None
            chosen += [(node, share) for node in nodes]
        return chosen

    def _fit(self, shares: Shares, sizes: Sequence[int]) -> bool:
        """Do the shares fit empty nodes of these sizes, both largest first?"""
        if self.placement is _DISTRIBUTED:
            return sum(sizes) >= sum(shares)
        enough = all(size >= share for share, size in zip(shares, sizes, strict=False))
        return enough and len(shares) <= len(sizes)


def request_of(option: Option, job: JobInfo) -> Request:
    """What decides whether the option fits at all.

    Of jobs with equal requests all fit, or none.
    """
    return _request(option, job, asked(job, option).required)


def _request(option: Option, job: JobInfo | None, level: TopologyLevel) -> Request:
    config = option.config
    return (
        config.gpu_model, config.tuning, config.number_nodes, config.number_gpus, option.price_per_gpu_hour,
        option.gpu_memory_bytes, job.only_node if job else None, job.avoids if job else NONE, level,
    )  # fmt: skip


def equal_shares(option: Option) -> Shares:
    """The option's GPUs over its nodes, as evenly as they divide."""
    return _equal_shares(option.config.number_gpus, option.config.number_nodes)


@cache
def _whole_nodes(gpus: int, largest: int) -> Shares:
    whole, rest = divmod(gpus, largest)
    return (largest,) * whole + ((rest,) if rest else ())


@cache
def _counted(shares: Shares) -> tuple[tuple[int, int], ...]:
    """Each size of share with the number of such shares."""
    return tuple(Counter(shares).items())


@cache
def _equal_shares(gpus: int, nodes: int) -> Shares:
    each, rest = divmod(gpus, nodes)
    return (each + 1,) * rest + (each,) * (nodes - rest)


def alpha_score(gpus: float, free_gpus: float, memory: float, free_memory: float) -> float:
    """How well a request fits what is free, higher is better: -(c + m + m/c + c/m).

    c and m are the requested shares of the free GPUs and of the free memory, both above 0. Where a memory
    is unknown (0), m is taken as c. Source: Novikov et al., AlphaEvolve, white paper, 2025.
    """
    c = gpus / free_gpus
    m = memory / free_memory if memory and free_memory else c
    return -(c + m + m / c + c / m)


def _best_scores(
    pool: FreeGpuIndex, shares: Shares, memory: float, unfit: frozenset[str]
) -> list[tuple[str, int]] | None:
    chosen: dict[str, int] = {}
    for share in shares:
        scores = [
            (-alpha_score(share, pool.count(node), memory, pool.nodes[node].free_memory_bytes), node)
            for node in pool.able(share)
            if node not in chosen and node not in unfit and _has_memory(pool.nodes[node], memory)
        ]
        if not scores:
            return None
        chosen[min(scores)[1]] = share
    return list(chosen.items())


def _has_memory(node: NodeInfo, memory: float) -> bool:
    return not node.free_memory_bytes or node.free_memory_bytes >= memory
