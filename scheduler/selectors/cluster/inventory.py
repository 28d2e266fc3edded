"""The cluster as knowledge needs to know it: what could be had if it were empty."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict

from django.conf import settings
from django.db.models import Min

from knowledge.core.domain import catalogue
from knowledge.core.domain.types import GpuPool, Inventory, Unsupported
from scheduler.models import Gpu, Node

NAMED = 3  # nodes in a sentence


def inventory() -> Inventory:
    """One pool for each GPU model, price and network of the registered nodes, in one query.

    Nodes that are lost or draining count: options stay valid when a node comes back.
    """
    sizes: dict[tuple[str, float, str], dict[str, list[Gpu]]] = defaultdict(lambda: defaultdict(list))
    for gpu in Gpu.present.select_related("node").order_by("node_id", "index"):
        key = (gpu.model, gpu.node.price_per_gpu_hour, gpu.node.network)
        sizes[key][gpu.node_id].append(gpu)
    return Inventory(
        pools=tuple(_pool(*key, nodes) for key, nodes in sorted(sizes.items())),
        max_nodes=settings.MAX_NODES_PER_JOB,
    )


def unknown_gpus() -> dict[str, int]:
    """GPU models of registered nodes that the catalogue lacks, with the bytes of the smallest one of each."""
    models = Gpu.present.values_list("model").annotate(Min("memory_bytes")).order_by("model")
    return {model: memory for model, memory in models if catalogue.known_gpu(model) is None}


def _pool(model: str, price: float, network: str, nodes: dict[str, list[Gpu]]) -> GpuPool:
    gpus = [gpu for of_node in nodes.values() for gpu in of_node]
    return GpuPool(
        gpu_model=model,
        node_sizes=tuple(sorted(len(of_node) for of_node in nodes.values())),
        memory_bytes=min(gpu.memory_bytes for gpu in gpus),
        price_per_gpu_hour=price,
        peak_flops=min((gpu.peak_flops for gpu in gpus if gpu.peak_flops), default=None),
        bandwidth_bytes_s=min((gpu.bandwidth_bytes_s for gpu in gpus if gpu.bandwidth_bytes_s), default=None),
        network=network,
        cannot_train=_lacks(nodes.values()),
    )


def _lacks(nodes: Collection[list[Gpu]]) -> dict[str, Unsupported]:
    """By method that some of the nodes, given as their GPUs, cannot train."""
    found = {}
    for method in sorted({method for gpus in nodes for method in gpus[0].node.cannot_train}):
        lacking = [gpus[0].node for gpus in nodes if method in gpus[0].node.cannot_train]
        able = (len(gpus) for gpus in nodes if method not in gpus[0].node.cannot_train)
        found[method] = Unsupported(why=_why(lacking, method), others=tuple(sorted(able)))
    return found


def _why(nodes: Sequence[Node], method: str) -> str:
    """Which nodes cannot train the method and why, equal reasons together."""
    named: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        named[node.cannot_train[method]].append(node.name)
    return "; ".join(f"{_names(names)}: {why}" for why, names in sorted(named.items()))


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(sorted(names)[:NAMED]) + more


def digest_of(stock: Inventory, knowledge_version: str) -> str:
    """A short name for "these nodes and this predictor": options made for another one are stale."""
    raw = json.dumps([asdict(stock), knowledge_version], sort_keys=True)
    return hashlib.sha256(raw.encode()).hexdigest()[:32]
