"""Spot nodes that their provider takes back.

An agent that sees the provider's notice says how long is left; no two clocks are compared.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from portal.events.types import EventType
from scheduler.models import Node
from scheduler.services.nodes.events import note_node
from scheduler.services.nodes.state import move_node, standing_drain
from scheduler.states import NodeState

SAME = timedelta(seconds=5)  # the duration is told anew with every sync


@transaction.atomic
def take_notice(*, node: Node, withdraw_in_s: float | None, now: datetime) -> None:
    """Move the jobs off a node that goes away.

    If it stays after all, it is trusted again.
    """
    if withdraw_in_s is None:
        if node.withdraw_at is not None:
            _stays(node, now)
        return
    at = now + timedelta(seconds=withdraw_in_s)
    if node.withdraw_at is not None and abs(at - node.withdraw_at) <= SAME:
        return
    first = node.withdraw_at is None
    Node.present.filter(pk=node.pk).update(withdraw_at=at, move_jobs=True)
    node.refresh_from_db()
    if not first:
        return
    reason = f"Its provider takes it back in {withdraw_in_s:.0f} s."
    if node.state == NodeState.READY:
        move_node(node=node, to=NodeState.DRAINING, event=EventType.NODE_WITHDRAWN, now=now, reason=reason)
    else:
        note_node(node=node, event=EventType.NODE_WITHDRAWN, now=now, reason=reason)


def _stays(node: Node, now: datetime) -> None:
    Node.present.filter(pk=node.pk).update(withdraw_at=None, move_jobs=False)
    node.refresh_from_db()
    reason = "Its provider's notice is gone."
    if node.state in (NodeState.DRAINING, NodeState.DRAINED) and standing_drain(node) is None:
        move_node(node=node, to=NodeState.READY, event=EventType.NODE_KEPT, now=now, reason=reason)
    else:
        note_node(node=node, event=EventType.NODE_KEPT, now=now, reason=reason)
