"""Forecasts of markets, kept with what became of them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from scheduler.models import Market, MarketForecast
from scheduler.selectors.markets.foreseen import foreseen
from scheduler.selectors.markets.quotes import seen_now

KEPT = timedelta(days=60)


@transaction.atomic
def keep_forecasts(*, now: datetime) -> None:
    """Judge the forecasts that are due, and make new ones once in a period."""
    period = timedelta(seconds=settings.SPOT_PERIOD_S)
    for market in Market.objects.all():
        made = MarketForecast.objects.filter(market=market)
        for due in made.filter(judged=False, at__lte=now):
            seen = seen_now(market, due.at)
            made.filter(pk=due.pk).update(
                judged=True, actual_price=seen.price, actual_available=seen.available
            )
        if made.filter(made_at__gt=now - period).exists():
            continue
        MarketForecast.objects.bulk_create(
            MarketForecast(
                market=market, made_at=now, at=now + one.ahead * period, horizon=one.ahead,
                method=one.price_by, price=one.price, available=one.available // market.gpus_per_node,
            )
            for one in foreseen(market, now)
        )  # fmt: skip
        made.filter(made_at__lt=now - KEPT).delete()
