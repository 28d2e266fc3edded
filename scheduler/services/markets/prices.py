"""Nodes of a market cost what it asks for."""

from __future__ import annotations

from datetime import datetime

from scheduler.core.market.types import NodeTerms
from scheduler.models import Market, Node
from scheduler.selectors.markets.quotes import seen_now
from scheduler.services.nodes.price import follow_price


def follow_market(*, market: Market, now: datetime) -> None:
    """Give the nodes of a market its present prices, from now on.

    A spot node costs the market's newest price, the on-demand price where none is known.
    """
    spot = seen_now(market, now).price
    prices = {
        NodeTerms.SPOT: market.on_demand_price if spot is None else spot,
        NodeTerms.ON_DEMAND: market.on_demand_price,
    }
    for node in Node.present.filter(market=market, kind__in=prices):
        follow_price(node=node, price=prices[NodeTerms(node.kind)], now=now)
