"""How often spot nodes of a market are taken back."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from portal.events.models import Event
from portal.events.types import EventType
from scheduler.core.market.types import NodeTerms
from scheduler.models import Market, Node
from scheduler.states import NodeState

MONTH = timedelta(days=30)


def interruptions_per_node_hour(market: Market, now: datetime) -> float | None:
    """Losses and notices of its spot nodes over the hours that they were here.

    The last 30 days count. None where no spot node was here.
    """
    since = now - MONTH
    nodes = list(Node.objects.filter(market=market, kind=NodeTerms.SPOT))
    hours = sum(_hours(node, since, now) for node in nodes)
    if hours <= 0:
        return None
    unannounced = [node.pk for node in nodes if node.withdraw_at is None]
    taken = Event.objects.filter(
        Q(type=EventType.NODE_WITHDRAWN, subject__in=[node.pk for node in nodes])
        | Q(type=EventType.NODE_LOST, subject__in=unannounced),
        at__gte=since,
    )
    return taken.count() / hours


def _hours(node: Node, since: datetime, now: datetime) -> float:
    """The hours from a node's enrolment until it was last heard of."""
    end = node.last_seen_at if node.state == NodeState.LOST or node.removed_at else now
    return max(0.0, (end - max(node.enrolled_at, since)).total_seconds() / 3600)
