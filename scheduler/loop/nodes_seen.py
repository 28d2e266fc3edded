"""The nodes of a cluster as policies see them, from rows."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from scheduler.core.market.types import NodeTerms
from scheduler.core.types import GpuId, GpuSite, NodeInfo
from scheduler.models import Gpu, Node
from scheduler.selectors.cluster.sites import known
from scheduler.selectors.silence import trusted_since
from scheduler.states import NodeState

COLUMNS = (
    "state", "last_seen_at", "cannot_train", "price_per_gpu_hour", "kind", "market__name", "withdraw_at",
)  # fmt: skip


def nodes_with_free(held: set[GpuId], now: datetime) -> tuple[NodeInfo, ...]:
    """The nodes there are, with the GPUs that nobody holds."""
    fresh = trusted_since(now)
    groups: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)  # index, memory
    sites: dict[str, list[GpuSite | None]] = defaultdict(list)
    for node_id, index, model, memory_bytes, site in Gpu.present.order_by("node_id", "index").values_list(
        "node_id", "index", "model", "memory_bytes", "site"
    ):
        groups[node_id, model].append((index, memory_bytes))
        sites[node_id].append(Gpu.place(site))
    rows = Node.present.select_related("market").only(*COLUMNS)
    nodes = rows.in_bulk()  # once each: a node has many GPUs
    return tuple(
        NodeInfo(
            id=node_id,
            gpu_model=model,
            total=len(gpus),
            free=tuple(index for index, _ in gpus if (node_id, index) not in held),
            cannot_train=frozenset(node.cannot_train),
            gpu_memory_bytes=min(memory_bytes for _, memory_bytes in gpus),
            price_per_gpu_hour=node.price_per_gpu_hour,
            sites=known(sites[node_id]),
            ready=node.state == NodeState.READY and node.last_seen_at >= fresh,
            **_terms(node, now),
        )
        for (node_id, model), gpus in sorted(groups.items())
        if (node := nodes.get(node_id))
    )


def _terms(node: Node, now: datetime) -> dict[str, Any]:
    """The terms on which a node is there, and until when."""
    return {
        "kind": NodeTerms(node.kind),
        "market": node.market.name if node.market else "",
        "withdraw_in_s": (node.withdraw_at - now).total_seconds() if node.withdraw_at else None,
    }
