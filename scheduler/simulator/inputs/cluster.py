"""The simulated cluster: pools of equal nodes.

The module also finds the bundles that a job could get on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from knowledge.core.domain.wording import counted
from scheduler.core.types import GpuSite
from scheduler.simulator.errors import ClusterError
from scheduler.simulator.inputs.cells import converted, optional, whole
from scheduler.simulator.inputs.files import Row
from scheduler.simulator.inputs.sites import parse_sites, sites_text
from scheduler.simulator.inputs.trace import TraceJob

_POOL = re.compile(
    r"(?P<model>[^:,@]+):(?P<nodes>[0-9]+)x(?P<gpus>[0-9]+)(?P<sites>(/[^/@]*)*)(@(?P<price>[0-9]+([.][0-9]+)?))?"
)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal nodes with GPUs of one model; the price is one GPU's for an hour.

    sites: where the GPUs of each node sit, by index; empty: nothing is known but the node.
    names: of the nodes; empty: they are numbered. memory_bytes: of a GPU. cannot_train: tunings.
    """

    gpu_model: str
    nodes: int
    gpus_per_node: int
    price_per_gpu_h: float = 0.0
    sites: tuple[GpuSite, ...] = ()
    names: tuple[str, ...] = ()
    memory_bytes: float = 0.0
    cannot_train: frozenset[str] = frozenset()

    @property
    def total(self) -> int:
        return self.nodes * self.gpus_per_node


class Bundle(NamedTuple):
    """GPUs of one model in equal parts on some nodes."""

    gpu_model: str
    gpus: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes of a simulated cluster; a price is of one GPU for an hour."""

    pools: tuple[NodeGroup, ...]
    # Answered requests by GPUs, nodes and GPU type: a trace repeats few kinds of them.
    _requested: dict[tuple[float, int, str], tuple[Bundle, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def total_gpus(self) -> int:
        return sum(pool.total for pool in self.pools)

    @property
    def prices(self) -> dict[str, float]:
        return {pool.gpu_model: pool.price_per_gpu_h for pool in self.pools}


def parse_cluster(text: str) -> Cluster:
    """Read a cluster such as `a100:8x8,l40s:4x4@1.10`.

    The parts are model, nodes x GPUs of each, perhaps how many GPUs share what (`/numa=4`), and
    perhaps a price per GPU-hour. Raises ClusterError.
    """
    pools = []
    for part in text.split(","):
        match = _POOL.fullmatch(part.strip())
        if match is None or int(match["nodes"]) < 1 or int(match["gpus"]) < 1:
            raise ClusterError(
                f"--cluster: {part.strip()!r} is not MODEL:NODESxGPUS, for example a100:8x8 or l40s:4x4@1.10"
            )
        nodes, gpus, price = int(match["nodes"]), int(match["gpus"]), float(match["price"] or 0.0)
        sites = parse_sites(match["sites"], gpus, "--cluster")
        pools.append(NodeGroup(match["model"].strip(), nodes, gpus, price, sites))
    return checked(pools, "--cluster")


def read_cluster(rows: Iterable[Row]) -> Cluster:
    """Read a trace's `cluster.csv`, one node per row.

    The columns are node, gpu_type, gpus, and perhaps price_per_h of the whole node. Racks and
    spot marks are not read: distances between nodes and prices that change are not simulated.
    Raises ClusterError.
    """
    nodes: set[str] = set()

    def node(row: Row) -> tuple[str, int, float]:
        gpus, price = whole(row, "gpus"), optional(row, "price_per_h") or 0.0
        if gpus < 1 or not 0 <= price < inf or not row["gpu_type"]:
            raise ValueError("a node has a GPU model, 1 GPU or more, and a price of 0 or more")
        if row["node"] in nodes:
            raise ValueError(f"node {row['node']!r} was named before")
        nodes.add(row["node"])
        return row["gpu_type"], gpus, round(price / gpus, 9)

    needs = "node, gpu_type and gpus as a number"
    sizes = Counter(converted(rows, node, file="cluster.csv", needs=needs, error=ClusterError))
    if not sizes:
        raise ClusterError("cluster.csv: names no node")
    return checked(
        [NodeGroup(model, count, gpus, price) for (model, gpus, price), count in sizes.items()], "cluster.csv"
    )


def checked(pools: Sequence[NodeGroup], where: str) -> Cluster:
    """Return a cluster of these pools.

    Raises ClusterError if two of them contradict each other.
    """
    if len({(pool.gpu_model, pool.gpus_per_node) for pool in pools}) < len(pools):
        raise ClusterError(f"{where}: name each GPU model once for every size of node")
    priced = {(pool.gpu_model, pool.price_per_gpu_h) for pool in pools}
    if len(priced) > len({pool.gpu_model for pool in pools}):
        raise ClusterError(f"{where}: a GPU model has one price")
    return Cluster(tuple(pools))


def as_text(cluster: Cluster) -> str:
    """The description of a cluster that `parse_cluster` reads."""
    parts = []
    for pool in cluster.pools:
        price = f"@{pool.price_per_gpu_h:.6f}".rstrip("0").rstrip(".") if pool.price_per_gpu_h else ""
        sites = sites_text(pool.sites)
        parts.append(f"{pool.gpu_model}:{pool.nodes}x{pool.gpus_per_node}{sites}{price}")
    return ",".join(parts)


def requested(job: TraceJob, cluster: Cluster) -> tuple[Bundle, ...]:
    """Return the bundles that are just as the job asked for.

    There is one per pool, on as few nodes as hold it.
    """
    request = job.gpus, job.nodes, job.gpu_type
    found = cluster._requested.get(request)
    if found is None:
        found = _bundles(job.whole_gpus, job.nodes, job.gpu_type, cluster)
        cluster._requested[request] = found
    return found


def _bundles(gpus: int, nodes: int, gpu_type: str, cluster: Cluster) -> tuple[Bundle, ...]:
    bundles = []
    for pool in _allowed(gpu_type, cluster):
        over = nodes or fewest_nodes(gpus, pool)
        if over and _fits(Bundle(pool.gpu_model, gpus, over), pool):
            bundles.append(Bundle(pool.gpu_model, gpus, over))
    return tuple(dict.fromkeys(bundles))  # pools may share a model


def elastic(job: TraceJob, cluster: Cluster) -> list[Bundle]:
    """Return Sia's bundles (SOSP'23) within the job's bounds.

    They are 1, 2, 4, ... GPUs of a node, then whole nodes.
    """
    bundles = []
    for pool in _allowed(job.gpu_type, cluster):
        size = pool.gpus_per_node
        within = {1 << power for power in range(size.bit_length()) if 1 << power <= size} | {size}
        bundles += [Bundle(pool.gpu_model, gpus, 1) for gpus in sorted(within)]
        bundles += [Bundle(pool.gpu_model, nodes * size, nodes) for nodes in range(2, pool.nodes + 1)]
    return [bundle for bundle in dict.fromkeys(bundles) if job.least_gpus <= bundle.gpus <= job.most_gpus]


def fewest_nodes(gpus: int, pool: NodeGroup) -> int | None:
    """The least number of nodes that hold equal parts of the gang, or None."""
    least = -(-gpus // pool.gpus_per_node)
    return next((nodes for nodes in range(least, min(gpus, pool.nodes) + 1) if gpus % nodes == 0), None)


def why_impossible(job: TraceJob, cluster: Cluster) -> str:
    """The sentence for a job that fits nowhere on this cluster."""
    kind = f"{job.gpu_type} " if job.gpu_type else ""
    shape = f" on {counted(job.nodes, 'node')}" if job.nodes else " in equal parts"
    offers = ", ".join(f"{pool.nodes} × {pool.gpus_per_node} {pool.gpu_model}" for pool in cluster.pools)
    gpus = counted(job.whole_gpus, f"{kind}GPU")
    return f"needs {gpus}{shape}; the cluster offers {offers}"


def _allowed(gpu_type: str, cluster: Cluster) -> list[NodeGroup]:
    models = set(gpu_type.split("|")) if gpu_type else None
    return [pool for pool in cluster.pools if models is None or pool.gpu_model in models]


def _fits(bundle: Bundle, pool: NodeGroup) -> bool:
    return (
        bundle.nodes <= pool.nodes
        and bundle.gpus % bundle.nodes == 0
        and bundle.gpus // bundle.nodes <= pool.gpus_per_node
    )
