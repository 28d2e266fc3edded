"""Nodes that a policy wants of markets, kept until they have come."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from portal.events.types import EventType
from scheduler import hints
from scheduler.core.market.types import Acquire, NodeAction, NodeTerms, Release
from scheduler.models import Market, MarketOrder, Node
from scheduler.services.nodes.state import move_node
from scheduler.states import NodeState


@transaction.atomic
def take_orders(*, actions: Iterable[NodeAction], now: datetime) -> None:
    """Keep what a plan asks of markets.

    A node that it does not ask for again is no longer wanted. A node that is given back gets no more
    work. Nodes and markets that are gone meanwhile are left out.
    """
    wants = list(actions)
    wanted = {(one.market, one.kind): one.nodes for one in wants if isinstance(one, Acquire)}
    news = False
    for market in Market.objects.exclude(provisioner=""):
        for kind in (NodeTerms.SPOT, NodeTerms.ON_DEMAND):
            nodes = min(wanted.get((market.name, kind), 0), market.max_nodes)
            order, new = MarketOrder.objects.get_or_create(
                market=market, kind=kind, defaults={"nodes": nodes, "changed_at": now}
            )
            if not new and order.nodes != nodes:
                MarketOrder.objects.filter(pk=order.pk).update(nodes=nodes, changed_at=now)
            news = news or (nodes > 0 and (new or order.nodes != nodes))
    for one in wants:
        if isinstance(one, Release):
            news = _give_back(one.node, now) or news
    if news:
        hints.markets()


def _give_back(node_id: str, now: datetime) -> bool:
    node = Node.present.filter(pk=node_id, state=NodeState.READY, market__isnull=False).first()
    if node is None:
        return False
    Node.present.filter(pk=node.pk).update(give_back=True)
    move_node(
        node=node, to=NodeState.DRAINING, event=EventType.NODE_DRAINING, now=now,
        reason="No job needs it; it goes back to its market.",
    )  # fmt: skip
    return True
