"""Where the GPUs of nodes sit, from rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from scheduler.core.types import GpuSite
from scheduler.models import Gpu

Sites = tuple[GpuSite, ...]


def sites_of(nodes: Collection[str] | None = None) -> dict[str, Sites]:
    """The sites of the GPUs of these nodes, or of all, by index.

    A node of which one is unknown has none.
    """
    gpus = Gpu.present.order_by("node_id", "index").only("node_id", "index", "site")
    placed: dict[str, list[GpuSite | None]] = defaultdict(list)
    for gpu in gpus if nodes is None else gpus.filter(node__in=nodes):
        placed[gpu.node_id].append(gpu.placed)
    return {node: known(sites) for node, sites in placed.items()}


def known(sites: Collection[GpuSite | None]) -> Sites:
    """The sites of a node's GPUs, or none: some alone say nothing."""
    found = tuple(site for site in sites if site is not None)
    return found if len(found) == len(sites) else ()
