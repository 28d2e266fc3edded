"""The GPUs of nodes: those that are in place, and which node may offer a device.

A device, told by its UUID, is one node's at a time: the constraint on `Gpu.device` says so. A node
that was lost or removed leaves its devices to whoever reports them next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Q

from knowledge.catalogue.portal_catalogue import portal_catalogue
from portal.events.types import EventType
from scheduler import hints
from scheduler.core.placement.devices import Matching, Slot, difference, match
from scheduler.core.placement.link_speeds import speeds_by_level
from scheduler.core.placement.sites import topology_of
from scheduler.errors import Conflict
from scheduler.models import Allocation, Gpu, Node, PendingGpu
from scheduler.services.nodes.events import note_node
from scheduler.services.nodes.speed_tests import take_speed_tests
from scheduler.states import Block, NodeState
from trainer.protocol import GpuFacts, NodeFacts, to_json
from trainer.protocol_parsing import device_of, parse_facts

NEW_UNTIL_PLACED = -1  # a GPU whose number another one still has


class GpuTrouble(NamedTuple):
    """Why the GPUs of a node are given to nobody."""

    kind: Block
    reason: str


def take_gpus(*, node: Node, facts: NodeFacts, now: datetime) -> None:
    """Take over what a node that is held says of itself, unless its GPUs changed.

    Other facts are kept for an administrator (`take_other_facts`); devices that it does not report any more
    are free for other nodes at once.
    """
    matching = _matching(node, facts)
    reported = {device_of(gpu.uuid) for gpu in facts.gpus} - {None}
    node.gpus.exclude(device__isnull=True).exclude(device__in=reported).update(device=None)
    if matching.is_whole:
        write_facts(node=node, facts=facts, matching=matching, now=now)
    else:
        Node.objects.filter(pk=node.pk).update(other_facts=to_json(facts))
    node.refresh_from_db()


@transaction.atomic
def take_other_facts(*, node: Node, now: datetime) -> None:
    """Let a node that is held have the GPUs that it reports now.

    Nothing happens if it has them. Raises Conflict while a job holds one that is gone.
    """
    if node.other_facts is None:
        return
    facts = parse_facts(node.other_facts)
    matching = _matching(node, facts)
    gone = node.gpus.filter(index__in=[slot.index for slot in matching.missing])
    held = Allocation.objects.filter(gpu__in=gone, released_at__isnull=True).select_related("claim__attempt")
    if holder := held.first():
        raise Conflict(
            f"Job {holder.claim.attempt.job_id} still holds a GPU that is gone; cancel it, or wait."
        )
    PendingGpu.objects.filter(gpu__in=gone).delete()
    gone.update(gone_at=now, device=None)
    write_facts(node=node, facts=facts, matching=matching, now=now)
    note_node(
        node=node, event=EventType.NODE_GPUS_CHANGED, now=now, reason=f"Taken over: {difference(matching)}."
    )
    node.refresh_from_db()


def write_facts(*, node: Node, facts: NodeFacts, now: datetime, matching: Matching | None = None) -> None:
    """Write what a node says of itself, each GPU into the row that it has had."""
    matching = matching or _matching(node, facts)
    topology = topology_of(facts.gpus)
    models = [_canonical(gpu.model) for gpu in facts.gpus]
    links = speeds_by_level(facts.link_tests, models, topology.sites)
    Node.objects.filter(pk=node.pk).update(
        hostname=facts.hostname,
        cores=facts.cores,
        memory_bytes=facts.memory_bytes,
        software=facts.software,
        cannot_train=facts.cannot_train,
        held_models=facts.held_models,
        topology_declared=topology.declared,
        topology_warning=topology.warning,
        link_speeds=[link._asdict() for link in links],
        link_problem=facts.link_problem,
        other_facts=None,
    )
    values = {
        gpu.index: {
            "index": gpu.index,
            "model": model,
            "memory_bytes": gpu.memory_bytes,
            "uuid": gpu.uuid,
            "peak_flops": gpu.peak_flops,
            "bandwidth_bytes_s": gpu.bandwidth_bytes_s,
            "links": gpu.links,
            "site": site._asdict() if site else None,
        }
        for gpu, model, site in zip_longest(facts.gpus, models, topology.sites)
    }
    _write_rows(node, values, {old.index: new.index for old, new in matching.pairs}, now)
    for old, new in matching.exchanged:
        reason = f"GPU {new.index} is another one: {new.uuid} instead of {old.uuid}."
        note_node(node=node, event=EventType.NODE_GPUS_CHANGED, now=now, reason=reason)
    node.software = facts.software
    take_speed_tests(node=node, tests=facts.speed_tests, now=now)
    hints.refresh_options()


def _write_rows(
    node: Node, values: Mapping[int, Mapping[str, Any]], places: Mapping[int, int], now: datetime
) -> None:
    """places: the number that a known GPU had -> its number now."""
    rows = list(node.gpus.filter(index__in=list(places)))
    moved = [row for row in rows if places[row.index] != row.index]
    numbers = {row.pk: places[row.index] for row in rows}
    for row in moved:
        row.index = NEW_UNTIL_PLACED - row.index
    if moved:
        Gpu.objects.bulk_update(moved, ["index"])
    for row in rows:
        for name, value in values[numbers[row.pk]].items():
            setattr(row, name, value)
    if rows:
        Gpu.objects.bulk_update(rows, list(values[0]))
    new = [index for index in values if index not in places.values()]
    Gpu.objects.bulk_create(Gpu(node=node, since=now, **values[index]) for index in new)


def _matching(node: Node, facts: NodeFacts) -> Matching:
    known = [Slot(gpu.index, gpu.model, gpu.uuid) for gpu in node.gpus.order_by("index")]
    return match(known, [_slot(gpu) for gpu in facts.gpus])


def _slot(gpu: GpuFacts) -> Slot:
    return Slot(gpu.index, _canonical(gpu.model), gpu.uuid)


def _canonical(gpu_name: str) -> str:
    """The catalogue's key for a driver's name; an unknown GPU keeps the driver's."""
    return portal_catalogue().gpu_key(gpu_name)


@transaction.atomic
def gpu_trouble(*, node: Node, now: datetime) -> GpuTrouble | None:
    """Return why a node that is held may not give its GPUs away; None if it may.

    Devices that it reports and does not have are taken, from nodes that were lost or removed.
    """
    if node.other_facts is not None:
        matching = _matching(node, parse_facts(node.other_facts))
        return GpuTrouble(
            Block.CHANGED,
            f"It reports other GPUs than it joined with: {difference(matching)}. It works again by itself"
            " once they are as before; Resume can take the change over.",
        )
    for _ in range(2):  # whoever was first has committed by the second time
        try:
            with transaction.atomic():
                shared = _claim_devices(node, now)
        except IntegrityError:
            continue
        return _shared(shared) if shared else None
    return GpuTrouble(Block.SHARED, "Another node reports its GPUs at the same moment.")


def _claim_devices(node: Node, now: datetime) -> Sequence[Gpu]:
    """Take the devices of a node's GPUs, all or none.

    Returns those that other nodes use.
    """
    wanted = {device_of(uuid) for uuid in node.gpus.values_list("uuid", flat=True)} - {None}
    if not wanted:
        return ()
    # All in one order, and before their nodes are read: one that is readmitted meanwhile holds its own, too.
    held = Gpu.in_place.select_for_update(of=("self",)).filter(Q(device__in=wanted) | Q(node=node))
    rows = list(held.order_by("pk"))
    own = [gpu for gpu in rows if gpu.node_id == node.pk and gpu.device is None and device_of(gpu.uuid)]
    if not own:
        return ()
    others = [gpu for gpu in rows if gpu.node_id != node.pk]
    nodes = Node.objects.in_bulk({gpu.node_id for gpu in others})
    for gpu in others:
        gpu.node = nodes[gpu.node_id]
    if shared := [gpu for gpu in others if gpu.node.removed_at is None and gpu.node.state != NodeState.LOST]:
        return shared
    Gpu.objects.filter(pk__in=[gpu.pk for gpu in others]).update(device=None)
    for other in nodes.values():
        reason = f"Its GPUs are those of node {node.name} now, which reports the same UUIDs."
        note_node(node=other, event=EventType.NODE_GPUS_CHANGED, now=now, reason=reason)
    for gpu in own:
        gpu.device = device_of(gpu.uuid)
    Gpu.objects.bulk_update(own, ["device"])
    return ()


def _shared(used: Sequence[Gpu]) -> GpuTrouble:
    names = " and ".join(sorted({gpu.node.name for gpu in used}))
    several = len(used) > 1
    return GpuTrouble(
        Block.SHARED,
        f"The GPU{'s' if several else ''} {', '.join(gpu.uuid for gpu in used)} {'are' if several else 'is'}"
        f" offered by node {names} as well: two agents run on one machine. This one works once the other is"
        " lost or removed.",
    )
