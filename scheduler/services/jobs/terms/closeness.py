"""GPUs close together: what a person may ask for, by the nodes there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from knowledge.catalogue.portal_catalogue import portal_catalogue
from scheduler.core.placement.levels import TopologyLevel, closest
from scheduler.core.types import GpuSite, Topology
from scheduler.errors import BadParameters
from scheduler.models import Gpu
from scheduler.selectors.cluster.sites import known

INSISTS = frozenset({Topology.BEST_EFFORT, Topology.GUARANTEED})


def check_closeness(topology: str, level: int | None, fixed: Mapping[str, Any]) -> None:
    """Raise BadParameters for a level that says nothing, lacks, or that no node has.

    fixed: the parameters that the person fixed; without a number of GPUs, two are meant.
    """
    if topology not in INSISTS:
        if level is not None:
            raise _wrong_level("goes with GPUs close together, if possible or required; else leave it out")
        return
    if level is None:
        raise _wrong_level("is needed where GPUs shall lie close together: say how close")
    share = fixed.get("number_gpus", 2) // fixed.get("number_nodes", 1)
    if topology == Topology.GUARANTEED and share > 1:
        _check_there_is(TopologyLevel(level), share, fixed.get("gpu_model"))


def _check_there_is(level: TopologyLevel, share: int, gpu_model: str | None) -> None:
    """A node that is away now counts: it may come back."""
    found = [closest(sites, range(count), share)[0] for count, sites in _nodes(gpu_model) if count >= share]
    best = max(found, default=level)  # where no node is large enough, its options say so
    if best < level:
        there_is = f"no node has {share} GPUs in one {level.phrase}; the closest is one {best.phrase}"
        raise _wrong_level(f"{there_is}. Ask for that, or for the level if possible")


def _nodes(gpu_model: str | None) -> list[tuple[int, tuple[GpuSite, ...]]]:
    """The number of GPUs of each node with such GPUs, and their sites."""
    nodes: dict[str, list[GpuSite | None]] = defaultdict(list)
    catalogue = portal_catalogue()
    for gpu in Gpu.present.order_by("node_id", "index").only("node_id", "model", "site"):
        if gpu_model is None or catalogue.same_gpu(gpu.model, gpu_model):
            nodes[gpu.node_id].append(gpu.placed)
    return [(len(sites), known(sites)) for sites in nodes.values()]


def _wrong_level(why: str) -> BadParameters:
    return BadParameters({"topology_level": why})
