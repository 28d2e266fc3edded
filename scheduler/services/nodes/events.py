"""The history of nodes."""

from __future__ import annotations

from datetime import datetime

from portal.accounts.models import User
from scheduler.models import Node, NodeEvent
from scheduler.states import NodeEventKind


def note_node(
    *, node: Node, kind: NodeEventKind, now: datetime, reason: str = "", actor: User | None = None
) -> None:
    """Record what happened to a node; alone where its state stays."""
    NodeEvent.objects.create(node=node, kind=kind, reason=reason[:500], actor=actor, at=now)
