"""The life of a node (docs/node-lifecycle.md).

It is blocked, lost and back by what it does; administrators drain and resume it. Every change
of state is a `move_node`, which the table in scheduler.states has to allow and which leaves its
event.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from portal.accounts.models import User
from portal.accounts.services import audit
from portal.events.models import Event
from portal.events.types import EventType
from scheduler import hints
from scheduler.core.market.types import NodeTerms
from scheduler.errors import Conflict, check_transition
from scheduler.models import Node
from scheduler.services.nodes.events import note_node
from scheduler.services.nodes.gpus import gpu_trouble, take_other_facts
from scheduler.states import (
    ENDED_BY_REPORT,
    NODE_TRANSITIONS,
    STANDING,
    Block,
    NodeState,
)

DECLINES = 3
LIES, LIES_WITHIN = 3, timedelta(days=1)
LOSSES, LOST_WITHIN = 3, timedelta(hours=1)


@transaction.atomic
def block_node(*, node: Node, kind: Block, reason: str, now: datetime, until: datetime | None = None) -> None:
    """Give a node no more starts; `until` is when time heals it.

    A block that heals by itself takes the place of none that does not, and none is told twice.
    """
    _hold(node)
    if node.state == NodeState.BLOCKED and node.block_kind == kind == Block.IDENTITY:
        Node.objects.filter(pk=node.pk).update(until=until)
        return
    told = (NodeState.BLOCKED, kind, reason[:500])
    if kind in STANDING and (node.state, node.block_kind, node.reason) == told:
        return
    if until and node.until:
        until = max(until, node.until)
    lasts = node.block_kind in STANDING or (node.block_kind == Block.UNCONFIRMED and until is not None)
    if not lasts or kind in STANDING:
        move_node(
            node=node, to=NodeState.BLOCKED, event=EventType.NODE_BLOCKED, now=now, reason=reason,
            until=until, block_kind=kind,
        )  # fmt: skip


def lose_node(*, node: Node, reason: str, now: datetime) -> None:
    """A node that was silent for longer than its lease."""
    kept = node.block_kind if node.block_kind in STANDING else ""
    move_node(
        node=node, to=NodeState.LOST, event=EventType.NODE_LOST, now=now, reason=reason, block_kind=kept
    )


@transaction.atomic
def readmit_node(*, node: Node, now: datetime) -> None:
    """Trust a lost or blocked node again.

    It works unless its GPUs are not in order, or an administrator still has to end a drain: these
    outlast silence and blocks that heal.
    """
    _hold(node)
    healed = node.block_kind in ENDED_BY_REPORT or _is_over(node, now)
    if node.state != NodeState.LOST and not (node.state == NodeState.BLOCKED and healed):
        return
    if trouble := gpu_trouble(node=node, now=now):
        block_node(node=node, kind=trouble.kind, reason=trouble.reason, now=now)
    elif drain := standing_drain(node):
        move_node(
            node=node, to=NodeState.DRAINING, event=EventType.NODE_DRAINING, now=now,
            reason=drain.reason, actor=drain.actor,
        )  # fmt: skip
    elif _lies(node, now):
        _block_liar(node, now)
    elif node.state == NodeState.LOST and _flaps(node, now):
        block_node(
            node=node,
            kind=Block.FLAPPING,
            reason=f"It came back after being lost {LOSSES} times within an hour; check its network and log.",
            now=now,
            until=now + _blocked_for(),
        )
    else:
        event, reason = EventType.NODE_BACK, "It reports nothing running."
        if not node.events.filter(type=EventType.NODE_JOINED).exists():
            event, reason = EventType.NODE_JOINED, "It reported for the first time."
        move_node(node=node, to=NodeState.READY, event=event, now=now, reason=reason)


def _flaps(node: Node, now: datetime) -> bool:
    """Tell whether the node comes and goes.

    Jobs on it would lose their tries, which none does with a spot node. A resume begins the count anew.
    """
    if node.kind == NodeTerms.SPOT:
        return False
    counted = (EventType.NODE_LOST, EventType.NODE_RESUMED)
    events = node.events.filter(type__in=counted, at__gt=now - LOST_WITHIN)
    last = events.order_by("-id").values_list("type", flat=True)[:LOSSES]
    return list(last) == [EventType.NODE_LOST] * LOSSES


@transaction.atomic
def record_implausible(*, node: Node, what: str, now: datetime) -> None:
    """Note a report that cannot be, and block the node at the third within a day.

    Nothing is added while it is blocked for that: a resume begins the count anew.
    """
    _hold(node)
    if node.block_kind == Block.LIES:
        return
    note_node(node=node, event=EventType.NODE_IMPLAUSIBLE, now=now, reason=what)
    if _lies(node, now):
        _block_liar(node, now)


def _lies(node: Node, now: datetime) -> bool:
    counted = (EventType.NODE_IMPLAUSIBLE, EventType.NODE_RESUMED)
    events = node.events.filter(type__in=counted, at__gt=now - LIES_WITHIN)
    last = events.order_by("-id").values_list("type", flat=True)[:LIES]
    return list(last) == [EventType.NODE_IMPLAUSIBLE] * LIES


def _block_liar(node: Node, now: datetime) -> None:
    last = node.events.filter(type=EventType.NODE_IMPLAUSIBLE).order_by("-id").first()
    reason = (
        f"{LIES} of its reports within a day cannot be; the last one: {last.reason if last else ''}. Check"
        " its agent, then resume it."
    )
    block_node(node=node, kind=Block.LIES, reason=reason, now=now)


def _is_over(node: Node, now: datetime) -> bool:
    return node.until is not None and node.until < now


def standing_drain(node: Node) -> Event | None:
    """The drain that nobody has taken back, whatever happened to the node since."""
    decided = (EventType.NODE_DRAINING, EventType.NODE_RESUMED, EventType.NODE_BACK)
    last = node.events.filter(type__in=decided).order_by("-id").first()
    return last if last and last.type == EventType.NODE_DRAINING else None


def _must_prove_itself(node: Node) -> bool:
    """Tell whether the node may still run attempts that the portal gave up.

    Only its own report that nothing runs changes that.
    """
    return node.state == NodeState.LOST or node.block_kind == Block.UNCONFIRMED


@transaction.atomic
def record_decline(*, node: Node, reason: str, now: datetime) -> None:
    """Note and count a declined start, and block the node at the third.

    The three must be within the time for which a node is blocked.
    """
    _hold(node)
    note_node(node=node, event=EventType.NODE_DECLINED, now=now, reason=reason)
    since = (now - _blocked_for()).timestamp()
    recent = [at for at in node.declines if at > since] + [now.timestamp()]
    Node.objects.filter(pk=node.pk).update(declines=recent[-DECLINES:])
    if len(recent) >= DECLINES:
        minutes = settings.NODE_BLOCKED_S / 60
        block_node(
            node=node,
            kind=Block.DECLINES,
            reason=f"Declined {DECLINES} starts within {minutes:g} min; the last one: {reason}",
            now=now,
            until=now + _blocked_for(),
        )


def _blocked_for() -> timedelta:
    return timedelta(seconds=settings.NODE_BLOCKED_S)


@transaction.atomic
def drain_node(*, node: Node, actor: User, reason: str, move_jobs: bool, now: datetime) -> Node:
    """Drain a node: it gets no new starts.

    Running jobs may finish, or with `move_jobs` leave with a checkpoint. A node that is lost,
    or did not confirm a stop, drains as soon as it is heard of again. One that drains already
    stays as it is, unless its jobs shall now leave.
    """
    _hold(node)
    drains = node.state in (NodeState.DRAINING, NodeState.DRAINED) or standing_drain(node)
    if drains and (node.state == NodeState.DRAINED or node.move_jobs or not move_jobs):
        return node
    to = NodeState(node.state) if _must_prove_itself(node) else NodeState.DRAINING
    _decide(node, to, event=EventType.NODE_DRAINING, reason=reason, actor=actor, move_jobs=move_jobs, now=now)
    audit(action="node drained", actor=actor, target=node.pk, data={"reason": reason}, now=now)
    return node


@transaction.atomic
def resume_node(*, node: Node, actor: User, reason: str, now: datetime, take_over_gpus: bool = False) -> Node:
    """Let a drained, draining or blocked node work again.

    take_over_gpus: with the GPUs that it reports now, where they are others than it joined with. A node that
    works already stays as it is. Raises Conflict when its GPUs are not in order: a node that may still run
    what the portal gave up works again by itself once it reports that nothing runs, and not before.
    """
    _hold(node)
    if node.state == NodeState.READY:
        return node
    waits = _must_prove_itself(node)
    if waits and not standing_drain(node):
        raise Conflict(
            f"The node is {node.state} and may still run trainings that were given up; it resumes by"
            " itself once it reports nothing running."
        )
    if take_over_gpus:
        take_other_facts(node=node, now=now)
    if not waits and (trouble := gpu_trouble(node=node, now=now)):
        raise Conflict(f"The node cannot be resumed. {trouble.reason}")
    Node.objects.filter(pk=node.pk).update(declines=[], old_boot_ids=[], strays=[])
    to = NodeState(node.state) if waits else NodeState.READY
    _decide(node, to, event=EventType.NODE_RESUMED, reason=reason, actor=actor, move_jobs=False, now=now)
    audit(action="node resumed", actor=actor, target=node.pk, data={"reason": reason}, now=now)
    return node


def finish_drain(*, node: Node, now: datetime) -> None:
    """A draining node that holds nothing any more."""
    move_node(
        node=node, to=NodeState.DRAINED, event=EventType.NODE_DRAINED, now=now,
        reason=node.reason, actor=node.state_by,
    )  # fmt: skip


def _hold(node: Node) -> None:
    """Read the node again and hold it until the transaction ends.

    Decisions thus follow one another.
    """
    node.refresh_from_db(from_queryset=Node.objects.select_for_update(no_key=True))


def _decide(
    node: Node,
    to: NodeState,
    *,
    event: EventType,
    reason: str,
    actor: User,
    move_jobs: bool,
    now: datetime,
) -> None:
    """Note an administrator's order for a node that is held.

    A state that stays keeps its own reason.
    """
    Node.present.filter(pk=node.pk).update(move_jobs=move_jobs)
    if to == node.state:
        note_node(node=node, event=event, now=now, reason=reason, actor=actor)
        node.refresh_from_db()
    else:
        move_node(node=node, to=to, event=event, now=now, reason=reason, actor=actor)


@transaction.atomic
def move_node(
    *,
    node: Node,
    to: NodeState,
    event: EventType,
    now: datetime,
    reason: str = "",
    actor: User | None = None,
    until: datetime | None = None,
    block_kind: str = "",
) -> None:
    """Move a node to a new state and record why.

    Nothing happens if it moved since the caller saw it. Raises IllegalTransition if the table
    forbids it.
    """
    check_transition("node", NodeState(node.state), to, NODE_TRANSITIONS)
    here = Node.present.filter(pk=node.pk, state=node.state)
    if here.update(
        state=to, state_since=now, reason=reason[:500], until=until, state_by=actor, block_kind=block_kind
    ):
        note_node(node=node, event=event, now=now, reason=reason, actor=actor)
        hints.tick()
    node.refresh_from_db()
