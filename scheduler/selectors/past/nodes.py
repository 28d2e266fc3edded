"""The nodes of a time: which there were, and when each took jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import mean
from typing import NamedTuple

from django.db.models import Min, Q

from portal.events.models import Event
from portal.events.types import EventType
from scheduler.models import Claim, Gpu, Node
from scheduler.selectors.cluster.sites import known
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import CapacityChange

OPEN = frozenset({EventType.NODE_JOINED, EventType.NODE_BACK, EventType.NODE_RESUMED, EventType.NODE_KEPT})
GONE = frozenset({EventType.NODE_LOST, EventType.NODE_REMOVED})  # with what runs there
SHUT = frozenset({EventType.NODE_BLOCKED, EventType.NODE_DRAINING, EventType.NODE_WITHDRAWN})


class Availability(NamedTuple):
    """May jobs start on a node? stops: what ran there was lost."""

    ready: bool
    stops: bool = False


@dataclass(frozen=True, slots=True)
class PastNodes:
    """The nodes there were, and their comings and goings.

    Times are in s from the beginning.
    names: of each node's GPUs, one for each model that it has.
    """

    cluster: Cluster
    capacity: tuple[CapacityChange, ...]
    names: Mapping[str, tuple[str, ...]]


def past_nodes(begin: datetime, end: datetime) -> PastNodes:
    """The nodes that were registered at any time in [begin, end]; four queries."""
    used = Claim.objects.filter(attempt__created_at__lt=end).order_by().values_list("node")
    first_used = dict(used.annotate(first=Min("attempt__created_at")))
    came = Q(enrolled_at__lt=end) | Q(pk__in=first_used)
    there = Node.objects.filter(came).filter(Q(removed_at=None) | Q(removed_at__gt=begin))
    nodes = {node.pk: node for node in there.order_by("pk")}
    groups, names = _groups(nodes)
    events: dict[str, list[Event]] = defaultdict(list)
    for event in Event.objects.filter(subject__in=nodes, type__in=OPEN | GONE | SHUT, at__lt=end).order_by(
        "at", "pk"
    ):
        events[event.subject].append(event)
    changes = [
        CapacityChange(at, name, int(state.ready), stops=state.stops)
        for pk, node in nodes.items()
        for at, state in _changes(min(node.enrolled_at, first_used.get(pk, end)), events[pk], begin)
        for name in names.get(pk, ())
    ]
    return PastNodes(Cluster(tuple(groups)), tuple(sorted(changes, key=lambda one: one.t_s)), names)


def _changes(
    since: datetime, events: Iterable[Event], begin: datetime
) -> Iterator[tuple[float, Availability]]:
    """When a node became ready or not; it is ready at first if that says nothing else."""
    state = Availability(since <= begin)
    if not state.ready:
        yield 0.0, state
        state = Availability(True)
        yield (since - begin).total_seconds(), state
    lost, earlier = False, True
    for event in events:
        if event.at <= since:
            continue
        if earlier and event.at > begin:
            earlier = False
            if not state.ready:
                yield 0.0, state
        kind = EventType(event.type)
        if lost and kind is EventType.NODE_RESUMED:
            continue  # it takes jobs once it is heard of
        lost = kind is EventType.NODE_LOST or (lost and kind not in OPEN)
        new = Availability(kind in OPEN, kind in GONE)
        if new != state and not earlier:
            yield (event.at - begin).total_seconds(), new
        state = new
    if earlier and not state.ready:
        yield 0.0, state


def _groups(nodes: Mapping[str, Node]) -> tuple[list[NodeGroup], dict[str, tuple[str, ...]]]:
    """Equal nodes in pools, and the names of each node's GPUs."""
    gpus: dict[tuple[str, str], list[Gpu]] = defaultdict(list)
    for gpu in Gpu.in_place.filter(node__in=nodes).order_by("node_id", "index"):
        gpus[gpu.node_id, gpu.model].append(gpu)
    prices: dict[str, list[float]] = defaultdict(list)
    for (node, model), own in gpus.items():
        prices[model] += [nodes[node].price_per_gpu_hour] * len(own)
    alike: dict[NodeGroup, list[str]] = defaultdict(list)
    names: dict[str, tuple[str, ...]] = {}
    for (node, model), own in gpus.items():
        name = f"{node} {model}" if node in names else node  # few nodes have GPUs of several models
        names[node] = (*names.get(node, ()), name)
        alike[_group(model, own, nodes[node], mean(prices[model]))].append(name)
    groups = [
        NodeGroup(
            one.gpu_model, len(own), one.gpus_per_node, one.price_per_gpu_h, one.sites, tuple(own),
            one.memory_bytes, one.cannot_train,
        )
        for one, own in alike.items()
    ]  # fmt: skip
    return groups, names


def _group(model: str, gpus: list[Gpu], node: Node, price: float) -> NodeGroup:
    return NodeGroup(
        model, 1, len(gpus), price, sites=known([gpu.placed for gpu in gpus]),
        memory_bytes=min(gpu.memory_bytes for gpu in gpus), cannot_train=frozenset(node.cannot_train),
    )  # fmt: skip
