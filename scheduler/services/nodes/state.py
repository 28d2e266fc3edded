"""A node's state: blocked, lost and back by what it does, drained and resumed by administrators."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.errors import Conflict
from scheduler.models import Node, NodeEvent
from scheduler.states import NodeState

DECLINES = 3
LOSSES, LOST_WITHIN = 3, timedelta(hours=1)
IDENTITY, UNCONFIRMED, CHANGED = "identity", "unconfirmed-stop", "changed-gpus"
STANDING = (CHANGED,)  # blocks that an administrator alone ends


@transaction.atomic
def block_node(*, node: Node, kind: str, reason: str, now: datetime, until: datetime | None = None) -> None:
    """Give a node no more starts; `until` is when time heals it.

    A block that heals by itself takes the place of none that does not, and none is told twice.
    """
    _hold(node)
    if node.state == NodeState.BLOCKED and node.block_kind == kind in (IDENTITY, CHANGED):
        Node.objects.filter(pk=node.pk).update(until=until)
        return
    if until and node.until:
        until = max(until, node.until)
    lasts = node.block_kind in STANDING or (node.block_kind == UNCONFIRMED and until is not None)
    if not lasts or kind in STANDING:
        _set_state(
            node, NodeState.BLOCKED, now=now, kind="blocked", reason=reason, until=until, block_kind=kind
        )


def lose_node(*, node: Node, reason: str, now: datetime) -> None:
    """A node that was silent for longer than its lease."""
    kept = node.block_kind if node.block_kind in STANDING else ""
    _set_state(node, NodeState.LOST, now=now, kind="lost", reason=reason, block_kind=kept)


@transaction.atomic
def readmit_node(*, node: Node, now: datetime) -> None:
    """A lost or blocked node is trusted again: it works, unless an administrator has still to say so.

    What only they end outlasts silence and blocks that heal: a drain, other GPUs.
    """
    _hold(node)
    healed = node.state == NodeState.BLOCKED and (node.block_kind == UNCONFIRMED or _is_over(node, now))
    if node.state != NodeState.LOST and not healed:
        return
    if node.block_kind in STANDING:
        why = NodeEvent.objects.filter(node=node, kind="blocked").order_by("-id").first()
        reason, kind = why.reason if why else "", node.block_kind
        _set_state(node, NodeState.BLOCKED, now=now, kind="blocked", reason=reason, block_kind=kind)
    elif drain := _standing_drain(node):
        _set_state(node, NodeState.DRAINING, now=now, kind="drain", reason=drain.reason, actor=drain.actor)
    elif node.state == NodeState.LOST and _flaps(node, now):
        block_node(
            node=node,
            kind="flapping",
            reason=f"It is back after it was lost {LOSSES} times within an hour; see its network and log.",
            now=now,
            until=now + _blocked_for(),
        )
    else:
        kind, reason = "back", "It reports nothing running."
        if not NodeEvent.objects.filter(node=node, kind="joined").exists():
            kind, reason = "joined", f"From {node.address}."
        _set_state(node, NodeState.READY, now=now, kind=kind, reason=reason)


def _flaps(node: Node, now: datetime) -> bool:
    """Does it come and go? Jobs on it would lose their tries. A resume begins the count anew."""
    told = NodeEvent.objects.filter(node=node, kind__in=("lost", "resume"), at__gt=now - LOST_WITHIN)
    return list(told.order_by("-id").values_list("kind", flat=True)[:LOSSES]) == ["lost"] * LOSSES


def _is_over(node: Node, now: datetime) -> bool:
    return node.until is not None and node.until < now


def _standing_drain(node: Node) -> NodeEvent | None:
    """The drain that nobody has taken back, whatever happened to the node since."""
    said = NodeEvent.objects.filter(node=node, kind__in=("drain", "resume", "back"))
    last = said.order_by("-id").first()
    return last if last and last.kind == "drain" else None


def _must_prove_itself(node: Node) -> bool:
    """May it still run what the portal gave up? Only its own report that nothing runs changes that."""
    return node.state == NodeState.LOST or node.block_kind == UNCONFIRMED


@transaction.atomic
def record_decline(*, node: Node, reason: str, now: datetime) -> None:
    """Note and count a declined start; three within the time that a node is blocked for block it."""
    _hold(node)
    NodeEvent.objects.create(node=node, kind="declined", reason=reason[:500], at=now)
    since = (now - _blocked_for()).timestamp()
    recent = [at for at in node.declines if at > since] + [now.timestamp()]
    Node.objects.filter(pk=node.pk).update(declines=recent[-DECLINES:])
    if len(recent) >= DECLINES:
        minutes = settings.NODE_BLOCKED_S / 60
        block_node(
            node=node,
            kind="declines",
            reason=f"Declined {DECLINES} starts within {minutes:g} min; the last one: {reason}",
            now=now,
            until=now + _blocked_for(),
        )


def _blocked_for() -> timedelta:
    return timedelta(seconds=settings.NODE_BLOCKED_S)


@transaction.atomic
def drain_node(*, node: Node, actor: User, reason: str, move_jobs: bool, now: datetime) -> Node:
    """No new starts; running jobs may finish, or with `move_jobs` leave with a checkpoint.

    A node that is lost, or did not confirm a stop, drains as soon as it is heard of again. Raises Conflict
    when it is drained already.
    """
    _hold(node)
    if node.state in (NodeState.DRAINING, NodeState.DRAINED):
        raise Conflict(f"The node is already {node.state}.")
    if _standing_drain(node):
        raise Conflict(f"The node is {node.state} and was drained before; it stays drained when it is back.")
    to = NodeState(node.state) if _must_prove_itself(node) else NodeState.DRAINING
    _decide(node, to, kind="drain", reason=reason, actor=actor, move_jobs=move_jobs, now=now)
    audit(action="node drained", actor=actor, target=node.pk, data={"reason": reason}, now=now)
    return node


@transaction.atomic
def resume_node(*, node: Node, actor: User, reason: str, now: datetime) -> Node:
    """Let a drained, draining or blocked node work again.

    Raises Conflict when there is nothing to take back: a node that may still run what the portal gave up
    works again by itself once it reports that nothing runs, and not before.
    """
    _hold(node)
    waits = _must_prove_itself(node)
    if waits and not _standing_drain(node):
        raise Conflict(
            f"The node is {node.state} and may still run what was given up; it works again by itself once it"
            " reports nothing running."
        )
    if node.state == NodeState.READY:
        raise Conflict(f"The node is {node.state}; only a drained or blocked one can be resumed.")
    Node.objects.filter(pk=node.pk).update(declines=[], old_boot_ids=[], strays=[])
    to = NodeState(node.state) if waits else NodeState.READY
    _decide(node, to, kind="resume", reason=reason, actor=actor, move_jobs=False, now=now)
    audit(action="node resumed", actor=actor, target=node.pk, data={"reason": reason}, now=now)
    return node


def finish_drain(*, node: Node, now: datetime) -> None:
    """A draining node that holds nothing any more."""
    _set_state(node, NodeState.DRAINED, now=now, kind="drained", reason=node.reason, actor=node.state_by)


def _hold(node: Node) -> None:
    """Read the node again and hold it until the transaction ends: decisions follow one another."""
    node.refresh_from_db(from_queryset=Node.objects.select_for_update())


def _decide(
    node: Node, to: NodeState, *, kind: str, reason: str, actor: User, move_jobs: bool, now: datetime
) -> None:
    """What an administrator wants of a node that is held; a state it keeps keeps its own reason."""
    Node.present.filter(pk=node.pk).update(move_jobs=move_jobs)
    if to == node.state:
        NodeEvent.objects.create(node=node, kind=kind, reason=reason[:500], actor=actor, at=now)
        node.refresh_from_db()
    else:
        _set_state(node, to, now=now, kind=kind, reason=reason, actor=actor)


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
    block_kind: str = "",
) -> None:
    """Guarded by the state the caller saw: whoever comes second changes nothing."""
    here = Node.present.filter(pk=node.pk, state=node.state)
    if here.update(
        state=to, state_since=now, reason=reason[:500], until=until, state_by=actor, block_kind=block_kind
    ):
        NodeEvent.objects.create(node=node, kind=kind, reason=reason[:500], actor=actor, at=now)
        hints.tick()
    node.refresh_from_db()
