"""The history of nodes."""

from __future__ import annotations

from datetime import datetime

from portal.accounts.models import User
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EventType
from scheduler.models import Node


def note_node(
    *, node: Node, event: EventType, now: datetime, reason: str = "", actor: User | None = None
) -> None:
    """Record what happened to a node; alone where its state stays."""
    record([Event(subject=node.pk, type=event, reason=reason[:500], actor=actor, at=now)])
