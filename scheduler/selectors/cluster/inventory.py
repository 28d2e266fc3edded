"""The cluster as knowledge needs to know it: what could be had if it were empty."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict

from django.conf import settings
from django.db.models import Min

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.offline_node import OfflineNode
from knowledge.core.domain.types import GpuPool, Inventory, Unsupported
from scheduler.core.market.types import NodeTerms
from scheduler.core.placement.link_speeds import LinkSpeed
from scheduler.core.policies.spot import SPOT
from scheduler.models import Gpu, Market, Node
from scheduler.selectors.policy import current_policy
from scheduler.states import IN_SERVICE

NAMED = 3  # nodes in a sentence
SAME_MEMORY = 1.1  # GPUs of one model are of one pool if none holds more than so much of another's memory

_Node = list[Gpu]  # its GPUs of one model


def inventory(*, in_service: bool = True, spot: bool = False) -> Inventory:
    """Return the pools of GPUs, in one query.

    There is one for each GPU model, price, network and memory. The pools are of the registered nodes that are
    in service: nothing is promised on nodes that are lost or drained. If all are, or without `in_service`,
    they are of all registered nodes: those are to come back.

    spot: with spot nodes. They count at the on-demand price of their market, which none of them exceeds where
    a job is put, so that no promise breaks when the price moves. Under the policy that asks markets for
    nodes, one that has none counts with those that it may bring.
    """
    nodes: dict[tuple[str, str], _Node] = defaultdict(list)
    for gpu in Gpu.present.select_related("node__market").order_by("node_id", "index"):
        if spot or gpu.node.kind != NodeTerms.SPOT:
            nodes[gpu.node_id, gpu.model].append(gpu)
    serving = [gpus for gpus in nodes.values() if gpus[0].node.state in IN_SERVICE] if in_service else []
    alike: dict[tuple[str, float, str], list[_Node]] = defaultdict(list)
    for gpus in serving or nodes.values():
        node = gpus[0].node
        alike[gpus[0].model, _price(node), node.network].append(gpus)
    here = tuple(_pool(*key, some) for key, found in sorted(alike.items()) for some in _by_memory(found))
    held = {gpus[0].node.market_id for found in alike.values() for gpus in found}
    return Inventory(
        pools=(*here, *_to_come(held)) if spot else here,
        max_nodes=settings.MAX_NODES_PER_JOB,
        in_service=bool(serving) or not nodes,
    )


def _to_come(held: Collection[int | None]) -> Iterator[GpuPool]:
    """The GPUs that markets may bring and no node has yet, by the catalogue."""
    if current_policy() != SPOT.name:
        return
    markets = Market.objects.exclude(provisioner="").filter(max_nodes__gt=0).order_by("name")
    for market in markets:
        gpu = None if market.pk in held else portal_catalogue().known_gpu(market.gpu_model)
        if gpu is not None:
            yield GpuPool(
                gpu_model=market.gpu_model,
                node_sizes=(market.gpus_per_node,) * market.max_nodes,
                memory_bytes=int(gpu.capacity_bytes),
                price_per_gpu_hour=market.on_demand_price,
            )


def _price(node: Node) -> float:
    if node.kind == NodeTerms.SPOT and node.market is not None:
        return max(node.price_per_gpu_hour, node.market.on_demand_price)
    return node.price_per_gpu_hour


def _by_memory(nodes: Sequence[_Node]) -> list[list[_Node]]:
    """Nodes whose smallest GPUs hold about as much, the least first."""
    groups: list[list[_Node]] = []
    for node in sorted(nodes, key=_least_memory):
        if groups and _least_memory(node) <= SAME_MEMORY * _least_memory(groups[-1][0]):
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _least_memory(node: _Node) -> int:
    return min(gpu.memory_bytes for gpu in node)


def inventory_models() -> list[str]:
    """The GPU models of registered nodes."""
    return list(Gpu.present.order_by("model").values_list("model", flat=True).distinct())


def unknown_gpus() -> dict[str, int]:
    """Return GPU models of registered nodes that the catalogue lacks.

    Each comes with the bytes of its smallest GPU.
    """
    models = Gpu.present.values_list("model").annotate(Min("memory_bytes")).order_by("model")
    known = portal_catalogue()
    return {model: memory for model, memory in models if known.known_gpu(model) is None}


def _pool(model: str, price: float, network: str, nodes: Sequence[_Node]) -> GpuPool:
    gpus = [gpu for of_node in nodes for gpu in of_node]
    return GpuPool(
        gpu_model=model,
        node_sizes=tuple(sorted(len(of_node) for of_node in nodes)),
        memory_bytes=min(gpu.memory_bytes for gpu in gpus),
        price_per_gpu_hour=price,
        peak_flops=min((gpu.peak_flops for gpu in gpus if gpu.peak_flops), default=None),
        bandwidth_bytes_s=min((gpu.bandwidth_bytes_s for gpu in gpus if gpu.bandwidth_bytes_s), default=None),
        network=network,
        cannot_train=_lacks(nodes),
        offline=tuple(_offline(nodes)),
        links=_links(model, nodes),
    )


def _links(model: str, nodes: Collection[_Node]) -> dict[str, float]:
    """The bytes/s at each level, as the slowest of these nodes has measured them."""
    found: dict[str, float] = {}
    for gpus in nodes:
        for link in (LinkSpeed(**kept) for kept in gpus[0].node.link_speeds):
            if link.gpu_model == model:
                found[link.level] = min(link.bytes_per_s, found.get(link.level, link.bytes_per_s))
    return found


def _offline(nodes: Collection[_Node]) -> Iterator[OfflineNode]:
    for gpus in nodes:
        node = gpus[0].node
        if node.held_models is not None:
            held, cannot_train = tuple(node.held_models), tuple(sorted(node.cannot_train))
            yield OfflineNode(name=node.name, gpus=len(gpus), held_models=held, cannot_train=cannot_train)


def _lacks(nodes: Collection[list[Gpu]]) -> dict[str, Unsupported]:
    """The tunings that some of the nodes, given as their GPUs, cannot train."""
    found = {}
    for tuning in sorted({tuning for gpus in nodes for tuning in gpus[0].node.cannot_train}):
        lacking = [gpus[0].node for gpus in nodes if tuning in gpus[0].node.cannot_train]
        able = (len(gpus) for gpus in nodes if tuning not in gpus[0].node.cannot_train)
        found[tuning] = Unsupported(why=_why(lacking, tuning), others=tuple(sorted(able)))
    return found


def _why(nodes: Sequence[Node], tuning: str) -> str:
    """Which nodes cannot train the tuning and why, equal reasons together."""
    named: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        named[node.cannot_train[tuning]].append(node.name)
    return "; ".join(f"{_names(names)}: {why}" for why, names in sorted(named.items()))


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(sorted(names)[:NAMED]) + more


def digest_of(stock: Inventory, knowledge_version: str) -> str:
    """Return a short name for these nodes and this predictor.

    Options made under another name are stale.
    """
    raw = json.dumps([asdict(stock), knowledge_version], sort_keys=True)
    return hashlib.sha256(raw.encode()).hexdigest()[:32]
