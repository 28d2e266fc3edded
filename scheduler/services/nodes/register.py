"""Nodes: joining, and what they say of themselves."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from itertools import zip_longest

from django.db import transaction
from django.db.models import F

from knowledge.catalogue.portal_catalogue import portal_catalogue
from portal.accounts.models import User
from portal.accounts.services import audit, digest_of, hold_active
from scheduler import hints
from scheduler.core.placement.link_speeds import speeds_by_level
from scheduler.core.placement.sites import topology_of
from scheduler.errors import NodeRefused, OldProtocol
from scheduler.models import Gpu, JoinToken, Node
from scheduler.services.nodes.speed_tests import take_speed_tests
from scheduler.services.nodes.state import block_node, note_node
from scheduler.states import Block, NodeEventKind, NodeState
from trainer.protocol import SUPPORTED_PROTOCOLS, Enrol, NodeFacts

_GPU_FACTS = ("model", "memory_bytes", "uuid", "peak_flops", "bandwidth_bytes_s", "links", "site")


@transaction.atomic
def create_join_token(*, actor: User, now: datetime, lifetime_s: float = 3600, uses: int = 1) -> str:
    """Create a token that lets `uses` nodes join until it expires.

    It is shown once, only its digest is kept. Raises NotAllowed for an actor who was locked
    out.
    """
    hold_active(actor)
    token = "fjoin-" + secrets.token_urlsafe(24)
    JoinToken.objects.create(
        token_hash=digest_of(token),
        created_by=actor,
        created_at=now,
        expires_at=now + timedelta(seconds=lifetime_s),
        uses_left=uses,
    )
    audit(action="join token created", actor=actor, now=now, data={"uses": uses, "lifetime_s": lifetime_s})
    return token


def require_protocol(version: int) -> None:
    """Raises OldProtocol naming what this portal supports."""
    if version not in SUPPORTED_PROTOCOLS:
        raise OldProtocol(f"Protocol {version} is not supported; install an agent of this portal's release.")


@transaction.atomic
def enrol_node(*, message: Enrol, address: str, now: datetime) -> tuple[Node, str]:
    """Register a node with the token that it chose, or a new one.

    A name that exists gets a number. It works from its first sync on. An agent that asks again with the same
    token, since the answer was lost, gets the same node. Raises NodeRefused for a join token that is
    unknown, expired or used up.
    """
    require_protocol(message.protocol)
    # Held: a repeated request finds either the join token unused or the node.
    join = JoinToken.objects.select_for_update().filter(token_hash=digest_of(message.join_token)).first()
    token = message.node_token or "fnode-" + secrets.token_urlsafe(32)
    if known := Node.present.filter(token_hash=digest_of(token)).first():
        return known, token
    if join is None or join.expires_at <= now or not join.uses_left:
        raise NodeRefused(
            "The join token is unknown, expired or used up; ask an administrator for a new one."
        )
    JoinToken.objects.filter(pk=join.pk).update(uses_left=F("uses_left") - 1)
    node = Node.objects.create(
        name=_free_name(message.name),
        state=NodeState.LOST,
        reason="The node has not reported since it enrolled.",
        state_since=now,
        token_hash=digest_of(token),
        protocol=message.protocol,
        address=address,
        enrolled_at=now,
        last_seen_at=now,
    )
    _write_facts(node, message.facts, now)
    note_node(node=node, kind=NodeEventKind.ENROLLED, now=now, reason=f"From {address}.")
    audit(action="node joined", node=node.name, target=node.pk, now=now, address=address)
    hints.refresh_options()
    hints.tick()
    return node, token


def _free_name(wanted: str) -> str:
    name = wanted[:90] or "node"
    taken = set(Node.present.filter(name__startswith=name).values_list("name", flat=True))
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(candidate for candidate in candidates if candidate not in taken)


def _write_facts(node: Node, facts: NodeFacts, now: datetime) -> None:
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
    )
    Gpu.objects.bulk_create(
        [
            Gpu(
                node=node,
                index=gpu.index,
                model=model,
                memory_bytes=gpu.memory_bytes,
                uuid=gpu.uuid,
                peak_flops=gpu.peak_flops,
                bandwidth_bytes_s=gpu.bandwidth_bytes_s,
                links=gpu.links,
                site=site._asdict() if site else None,
            )
            for gpu, model, site in zip_longest(facts.gpus, models, topology.sites)
        ],
        update_conflicts=True,
        unique_fields=("node", "index"),
        update_fields=_GPU_FACTS,
    )
    node.software = facts.software
    take_speed_tests(node=node, tests=facts.speed_tests, now=now)


def _canonical(gpu_name: str) -> str:
    """The catalogue's key for a driver's name; an unknown GPU keeps the driver's."""
    return portal_catalogue().gpu_key(gpu_name)


def update_facts(*, node: Node, facts: NodeFacts, now: datetime) -> None:
    """Take a node's facts over; other GPUs than it joined with block it."""
    before = list(node.gpus.order_by("index").values_list("index", "model"))
    if before != [(gpu.index, _canonical(gpu.model)) for gpu in facts.gpus]:
        reason = f"Its GPUs changed in number ({len(before)} to {len(facts.gpus)}) or model; enrol it again."
        block_node(node=node, kind=Block.CHANGED, reason=reason, now=now)
        return
    _write_facts(node, facts, now)
    hints.refresh_options()
