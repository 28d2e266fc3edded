"""The simulated nodes.

Free GPUs are kept as bits; the module also shows the nodes as policies see them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache

from scheduler.core.market.types import NodeTerms
from scheduler.core.placement.levels import TopologyLevel, reached
from scheduler.core.types import GpuId, NodeInfo
from scheduler.simulator.errors import ClusterError, PolicyBroke
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup


class SimulatedNode:
    """A simulated node; bit i of `free` says that nobody holds GPU i."""

    __slots__ = (
        "_view", "cannot_train", "free", "gpu_model", "id", "kind", "market", "memory_bytes", "price",
        "ready", "sites", "total",
    )  # fmt: skip

    def __init__(self, name: str, pool: NodeGroup) -> None:
        self.id = name
        self.gpu_model, self.total = pool.gpu_model, pool.gpus_per_node
        self.sites, self.memory_bytes, self.cannot_train = pool.sites, pool.memory_bytes, pool.cannot_train
        self.free = (1 << self.total) - 1
        self.ready = True
        self.kind, self.market, self.price = NodeTerms.OWNED, "", 0.0
        self._view: NodeInfo | None = None

    def view(self) -> NodeInfo:
        if self._view is None:
            self._view = NodeInfo(
                id=self.id,
                gpu_model=self.gpu_model,
                total=self.total,
                free=_indices(self.free),
                sites=self.sites,
                gpu_memory_bytes=self.memory_bytes,
                cannot_train=self.cannot_train,
                ready=self.ready,
                kind=self.kind,
                market=self.market,
                price_per_gpu_hour=self.price,
            )
        return self._view

    def changed(self) -> None:
        self._view = None


class Machines:
    """All nodes by id, named `MODEL-1`, `MODEL-2`, ... where they have no names.

    Leading zeros make names sort by number.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.by_id: dict[str, SimulatedNode] = {}
        self.ready_gpus = 0
        self.sited = False  # is it known of any node where its GPUs sit?
        named: Counter[str] = Counter()
        for pool in cluster.pools:
            width = len(str(sum(one.nodes for one in cluster.pools if one.gpu_model == pool.gpu_model)))
            for number in range(pool.nodes):
                named[pool.gpu_model] += 1
                numbered = f"{pool.gpu_model}-{named[pool.gpu_model]:0{width}}"
                self.add(SimulatedNode(pool.names[number] if pool.names else numbered, pool))

    def add(self, machine: SimulatedNode) -> None:
        """A node more, which is ready."""
        self.by_id[machine.id] = machine
        self.sited = self.sited or bool(machine.sites)
        self.ready_gpus += machine.total

    @property
    def free_gpus(self) -> int:
        """GPUs of ready nodes that nobody holds."""
        return sum(machine.free.bit_count() for machine in self.by_id.values() if machine.ready)

    def views(self) -> tuple[NodeInfo, ...]:
        return tuple([machine._view or machine.view() for machine in self.by_id.values()])

    def level(self, gpus: Collection[GpuId]) -> TopologyLevel | None:
        """The level at which these GPUs lie; None if it is of no account or unknown."""
        if not self.sited:
            return None
        sites = {name: self.by_id[name].sites for name, _ in gpus}
        return reached(sites, gpus) if any(sites.values()) else None

    def take(self, gpus: Iterable[GpuId], job: str) -> None:
        """Give GPUs to a job.

        Raises PolicyBroke if one is held already or its node is away.
        """
        for name, index in gpus:
            machine = self.by_id[name]
            bit = 1 << index
            if not machine.free & bit or not machine.ready:
                raise PolicyBroke(f"job {job} was given GPU {index} of {name}, which is not free")
            machine.free ^= bit
            machine._view = None

    def give_back(self, gpus: Iterable[GpuId]) -> None:
        for name, index in gpus:
            machine = self.by_id[name]
            machine.free |= 1 << index
            machine._view = None

    def set_ready(self, name: str, ready: bool) -> None:
        """A node fails or returns; its GPUs must have been given back before."""
        machine = self.by_id[name]
        if machine.ready != ready:
            machine.ready = ready
            machine.changed()
            self.ready_gpus += machine.total if ready else -machine.total

    def named(self, where: str) -> list[str]:
        """The ids of a pool's nodes in order, or of the one node.

        Raises ClusterError if there is neither.
        """
        pool = [machine.id for machine in self.by_id.values() if machine.gpu_model == where]
        if not pool and where not in self.by_id:
            raise ClusterError(
                f"{where!r} is no node or pool of the cluster; there are {', '.join(self.by_id)}"
            )
        return pool or [where]


@cache
def _indices(bits: int) -> tuple[int, ...]:
    return tuple(index for index in range(bits.bit_length()) if bits >> index & 1)
