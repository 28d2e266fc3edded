"""Markets, and what was last seen of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Q, QuerySet

from scheduler.core.market.types import NodeTerms, Quote
from scheduler.errors import NotFound
from scheduler.models import Market, MarketSample
from scheduler.states import NodeState

GAP_SLOTS = 2  # availability that was seen longer ago is unknown


class Seen(NamedTuple):
    """The newest sample of a market; None is unknown."""

    price: float | None
    available: int | None


def all_markets() -> QuerySet[Market]:
    """Every market by name, with the nodes that it holds of both kinds."""
    present = Q(nodes__removed_at__isnull=True) & ~Q(nodes__state=NodeState.LOST)
    return Market.objects.annotate(
        spot_nodes=Count("nodes", filter=present & Q(nodes__kind=NodeTerms.SPOT)),
        on_demand_nodes=Count("nodes", filter=present & Q(nodes__kind=NodeTerms.ON_DEMAND)),
    ).order_by("name")


def get_market(market_id: int) -> Market:
    """Raises NotFound."""
    found = all_markets().filter(pk=market_id).first()
    if found is None:
        raise NotFound("There is no such market; it may have been removed.")
    return found


def has_markets() -> bool:
    return Market.objects.exists()


def market_named(name: str) -> Market | None:
    """The market of this name."""
    return Market.objects.filter(name=name).first()


def samples_of(market: Market, *, since: datetime | None = None) -> QuerySet[MarketSample]:
    """The samples of a market, in order of time."""
    rows = MarketSample.objects.filter(market=market).order_by("at", "pk")
    return rows if since is None else rows.filter(at__gte=since)


def seen_now(market: Market, now: datetime) -> Seen:
    """The newest price, and the newest availability unless it is too old."""
    newest = MarketSample.objects.filter(market=market, at__lte=now).order_by("-at", "-pk")
    price = newest.filter(price__isnull=False).values_list("price", flat=True).first()
    fresh = newest.filter(available__isnull=False, at__gte=now - unknown_after())
    return Seen(price, fresh.values_list("available", flat=True).first())


def unknown_after() -> timedelta:
    """How long an availability is believed."""
    return timedelta(seconds=GAP_SLOTS * settings.SPOT_PERIOD_S)


def quotes_of(market: Market, *, since: datetime, until: datetime) -> list[Quote]:
    """The samples of a time as plain values, in order, and the one before it."""
    rows = samples_of(market).filter(at__lte=until)
    first = rows.filter(at__lt=since).order_by("-at", "-pk").values_list("at", flat=True).first()
    found = rows.filter(at__gte=first or since).values_list("at", "price", "available")
    return [Quote(at.timestamp(), price, available) for at, price, available in found]
