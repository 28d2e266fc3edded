"""Nodes: joining, and what they say of themselves."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from portal.accounts.models import User
from portal.accounts.services import audit, digest_of, hold_active
from portal.events.types import EventType
from scheduler import hints
from scheduler.errors import NodeRefused, OldProtocol
from scheduler.models import JoinToken, Node
from scheduler.services.nodes.events import note_node
from scheduler.services.nodes.gpus import gpu_trouble, take_gpus, write_facts
from scheduler.services.nodes.state import block_node
from scheduler.states import NodeState
from trainer.protocol import SUPPORTED_PROTOCOLS, Enrol, NodeFacts


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
    node = _create(
        message.name,
        state=NodeState.LOST,
        reason="The node has not reported since it enrolled.",
        state_since=now,
        token_hash=digest_of(token),
        protocol=message.protocol,
        address=address,
        enrolled_at=now,
        last_seen_at=now,
    )
    write_facts(node=node, facts=message.facts, now=now)
    gpu_trouble(node=node, now=now)  # takes its devices, if they are free; its first sync asks again
    note_node(node=node, event=EventType.NODE_ENROLLED, now=now, reason=f"From {address}.")
    audit(action="node joined", node=node.name, target=node.pk, now=now, address=address)
    hints.tick()
    return node, token


def _create(wanted: str, **values: Any) -> Node:
    """A node with the name, or the name and a number if another node has it."""
    created = False
    while not created:  # another one may take the name at the same moment
        node, created = Node.present.get_or_create(name=_free_name(wanted), defaults=values)
    return node


def _free_name(wanted: str) -> str:
    name = wanted[:90] or "node"
    taken = set(Node.present.filter(name__startswith=name).values_list("name", flat=True))
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(candidate for candidate in candidates if candidate not in taken)


@transaction.atomic
def update_facts(*, node: Node, facts: NodeFacts, now: datetime) -> None:
    """Take a node's facts over.

    Other GPUs than it joined with block it, as does one that another node offers.
    """
    node.refresh_from_db(from_queryset=Node.objects.select_for_update(no_key=True))
    take_gpus(node=node, facts=facts, now=now)
    if trouble := gpu_trouble(node=node, now=now):
        block_node(node=node, kind=trouble.kind, reason=trouble.reason, now=now)
