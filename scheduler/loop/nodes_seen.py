"""The nodes of a cluster as policies see them, from rows."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from scheduler.core.market.types import NodeTerms
from scheduler.core.types import GpuId, GpuSite, NodeInfo
from scheduler.models import Gpu, Node
from scheduler.selectors.cluster.sites import known
from scheduler.selectors.nodes import trusted_since
from scheduler.states import NodeState

GPU_COLUMNS = ("node_id", "index", "model", "memory_bytes", "site")


def nodes_with_free(held: set[GpuId], now: datetime) -> tuple[NodeInfo, ...]:
    """The nodes there are, with the GPUs that nobody holds."""
    fresh = trusted_since(now)
    groups: dict[tuple[str, str], list[Gpu]] = defaultdict(list)
    sites: dict[str, list[GpuSite | None]] = defaultdict(list)
    for gpu in Gpu.present.only(*GPU_COLUMNS).order_by("node_id", "index"):
        groups[gpu.node_id, gpu.model].append(gpu)
        sites[gpu.node_id].append(gpu.placed)
    nodes = Node.present.select_related("market").in_bulk()  # once each: a node has many GPUs
    return tuple(
        NodeInfo(
            id=node_id,
            gpu_model=model,
            total=len(gpus),
            free=tuple(gpu.index for gpu in gpus if (node_id, gpu.index) not in held),
            cannot_train=frozenset(node.cannot_train),
            gpu_memory_bytes=min(gpu.memory_bytes for gpu in gpus),
            price_per_gpu_hour=node.price_per_gpu_hour,
            sites=known(sites[node_id]),
            ready=node.state == NodeState.READY and node.last_seen_at >= fresh,
            **_terms(node, now),
        )
        for (node_id, model), gpus in sorted(groups.items())
        if (node := nodes.get(node_id))
    )


def _terms(node: Node, now: datetime) -> dict[str, Any]:
    """On what terms a node is there, and until when."""
    return {
        "kind": NodeTerms(node.kind),
        "market": node.market.name if node.market else "",
        "withdraw_in_s": (node.withdraw_at - now).total_seconds() if node.withdraw_at else None,
    }
