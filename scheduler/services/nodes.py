"""Nodes: joining, heartbeats, draining, blocking, losing and coming back."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from knowledge.core import catalog
from portal.accounts.models import User
from portal.accounts.services import audit, digest_of
from scheduler import hints
from scheduler.errors import Conflict, NodeRefused, OldProtocol
from scheduler.models import Gpu, JoinToken, Node, NodeEvent
from scheduler.states import NodeState
from trainer.protocol import SUPPORTED_PROTOCOLS, Enrol, NodeFacts

DECLINES, WITHIN, BLOCKED_FOR = 3, timedelta(minutes=10), timedelta(minutes=10)
IDENTITY, UNCONFIRMED, CHANGED = "identity", "unconfirmed-stop", "changed-gpus"


def create_join_token(*, actor: User, now: datetime, lifetime_s: float = 3600, uses: int = 1) -> str:
    """A token that lets `uses` nodes join until it expires; shown once, only its digest is kept."""
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
def enrol(*, message: Enrol, address: str, now: datetime) -> tuple[Node, str]:
    """Register a node under its name and give it a token. A name that exists gets a number.

    Raises NodeRefused for a token that is unknown, expired or used up.
    """
    require_protocol(message.protocol)
    found = JoinToken.objects.filter(
        token_hash=digest_of(message.join_token), expires_at__gt=now, uses_left__gt=0
    )
    if not found.update(uses_left=F("uses_left") - 1):
        raise NodeRefused(
            "The join token is unknown, expired or used up; ask an administrator for a new one."
        )
    token = "fnode-" + secrets.token_urlsafe(32)
    node = Node.objects.create(
        name=_free_name(message.name),
        state=NodeState.READY,
        state_since=now,
        token_hash=digest_of(token),
        protocol=message.protocol,
        address=address,
        enrolled_at=now,
        last_seen_at=now,
    )
    _write_facts(node, message.facts)
    NodeEvent.objects.create(node=node, kind="joined", reason=f"From {address}.", at=now)
    audit(action="node joined", node=node.name, target=node.pk, now=now, address=address)
    hints.refresh_options()
    hints.tick()
    return node, token


def _free_name(wanted: str) -> str:
    name = "".join(c for c in wanted if c.isprintable())[:90] or "node"
    taken = set(Node.present.filter(name__startswith=name).values_list("name", flat=True))
    candidates = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(candidate for candidate in candidates if candidate not in taken)


def _write_facts(node: Node, facts: NodeFacts) -> None:
    Node.objects.filter(pk=node.pk).update(
        hostname=facts.hostname,
        cores=facts.cores,
        memory_bytes=facts.memory_bytes,
        software=facts.software,
        cannot_train=facts.cannot_train,
    )
    for gpu in facts.gpus:
        Gpu.objects.update_or_create(
            node=node,
            index=gpu.index,
            defaults={
                "model": _canonical(gpu.model),
                "memory_bytes": gpu.memory_bytes,
                "uuid": gpu.uuid,
                "peak_flops": gpu.peak_flops,
                "bandwidth_bytes_s": gpu.bandwidth_bytes_s,
                "links": gpu.links,
            },
        )


def _canonical(gpu_name: str) -> str:
    """The catalogue's key for a driver's name; an unknown GPU keeps the driver's."""
    try:
        return catalog.gpu(gpu_name).gpu_model
    except catalog.UnknownGpu:
        return gpu_name


def update_facts(*, node: Node, facts: NodeFacts, now: datetime) -> None:
    """Take a node's facts over; other GPUs than it joined with block it."""
    before = list(node.gpus.order_by("index").values_list("index", "model"))
    if before != [(gpu.index, _canonical(gpu.model)) for gpu in facts.gpus]:
        reason = f"Its GPUs changed from {len(before)} to {len(facts.gpus)} or in model; enrol it anew."
        block_node(node=node, kind=CHANGED, reason=reason, now=now)
        return
    _write_facts(node, facts)
    hints.refresh_options()


def block_node(*, node: Node, kind: str, reason: str, now: datetime, until: datetime | None = None) -> None:
    """Give a node no more starts; `until` is when time heals it."""
    _set_state(node, NodeState.BLOCKED, now=now, kind="blocked", reason=reason, until=until, block_kind=kind)


def lose_node(*, node: Node, reason: str, now: datetime) -> None:
    """A node that was silent for longer than its lease."""
    _set_state(node, NodeState.LOST, now=now, kind="lost", reason=reason)


def welcome_back(*, node: Node, now: datetime) -> None:
    """A lost node, or one whose stop was not confirmed, reports nothing running: it may work again."""
    _set_state(node, NodeState.READY, now=now, kind="back", reason="It reports nothing running.")


def note_decline(*, node: Node, reason: str, now: datetime) -> None:
    """Count a declined start; three within ten minutes block the node for ten."""
    recent = [at for at in node.declines if at > (now - WITHIN).timestamp()] + [now.timestamp()]
    Node.objects.filter(pk=node.pk).update(declines=recent[-DECLINES:])
    if len(recent) >= DECLINES:
        block_node(
            node=node,
            kind="declines",
            reason=f"Declined {DECLINES} starts within ten minutes; the last one: {reason}",
            now=now,
            until=now + BLOCKED_FOR,
        )


def drain_node(*, node: Node, actor: User, reason: str, move_jobs: bool, now: datetime) -> Node:
    """No new starts; running jobs may finish, or with `move_jobs` leave with a checkpoint.

    Raises Conflict when the node is already draining or drained.
    """
    node.refresh_from_db()
    if node.state in (NodeState.DRAINING, NodeState.DRAINED):
        raise Conflict(f"The node is already {node.state}.")
    _set_state(
        node, NodeState.DRAINING, now=now, kind="drain", reason=reason, actor=actor, move_jobs=move_jobs
    )
    audit(action="node drained", actor=actor, target=node.pk, data={"reason": reason}, now=now)
    return node


def resume_node(*, node: Node, actor: User, reason: str, now: datetime) -> Node:
    """Let a drained, draining or blocked node work again. Raises Conflict in other states."""
    node.refresh_from_db()
    if node.state not in (NodeState.DRAINING, NodeState.DRAINED, NodeState.BLOCKED):
        raise Conflict(f"The node is {node.state}; only a drained or blocked one can be resumed.")
    Node.objects.filter(pk=node.pk).update(declines=[], old_boot_ids=[])
    _set_state(node, NodeState.READY, now=now, kind="resume", reason=reason, actor=actor)
    audit(action="node resumed", actor=actor, target=node.pk, data={"reason": reason}, now=now)
    return node


def finish_drain(*, node: Node, now: datetime) -> None:
    """A draining node that holds nothing any more."""
    _set_state(node, NodeState.DRAINED, now=now, kind="drained", reason=node.reason)


@transaction.atomic
def _set_state(
    node: Node,
    to: NodeState,
    *,
    now: datetime,
    kind: str,
    reason: str,
    actor: User | None = None,
    until: datetime | None = None,
    move_jobs: bool = False,
    block_kind: str = "",
) -> None:
    """Guarded by the state the caller saw: whoever comes second changes nothing."""
    here = Node.present.filter(pk=node.pk, state=node.state)
    if here.update(
        state=to,
        state_since=now,
        reason=reason[:500],
        until=until,
        state_by=actor,
        move_jobs=move_jobs,
        block_kind=block_kind,
    ):
        NodeEvent.objects.create(node=node, kind=kind, reason=reason[:500], actor=actor, at=now)
        hints.tick()
    node.refresh_from_db()
