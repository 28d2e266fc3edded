"""Markets slot by slot: what was, what is foreseen, and how well that held before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings

from scheduler.core.market.forecast import HorizonForecast, as_offers, forecasts, usual_offer
from scheduler.core.market.pool import POOL
from scheduler.core.market.quotes import Series, by_slot
from scheduler.core.market.recording import AHEAD
from scheduler.core.market.selection import Selection
from scheduler.core.market.types import MarketView
from scheduler.models import DeciderWeight, Market, MarketForecast
from scheduler.selectors.markets.quotes import quotes_of

WEEK = timedelta(days=7)
MOST_RECORDED = 2000  # slots that are looked back on, however short they are
JUDGED = 200  # forecasts of a horizon that its error is made of


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonError:
    """The mean absolute errors of the last forecasts so far ahead.

    None: none was judged.
    """

    horizon: int
    judged: int
    price: float | None
    available: float | None


def series_of(market: Market, now: datetime) -> Series:
    """The market's last days slot by slot; the last slot begins now.

    Of short slots it is the last `MOST_RECORDED`: each tick that decides on markets reads them.
    """
    period = timedelta(seconds=settings.SPOT_PERIOD_S)
    since = now - min(WEEK // period, MOST_RECORDED) * period
    return by_slot(
        quotes_of(market, since=since, until=now),
        since=since.timestamp(),
        until=now.timestamp(),
        period_s=settings.SPOT_PERIOD_S,
        gpus_per_node=market.gpus_per_node,
    )


def foreseen(market: Market, now: datetime) -> tuple[HorizonForecast, ...]:
    """Forecasts of the next periods; none where the present is unknown."""
    return forecasts(series_of(market, now), AHEAD)


def market_view(market: Market, now: datetime) -> MarketView:
    """The market as policies see it."""
    series = series_of(market, now)
    return replace(
        market_terms(market),
        offer=series.offer(len(series) - 1),
        forecast=as_offers(forecasts(series, AHEAD)),
        usual=usual_offer(series),
        weights=drawing_weights(market),
    )


def market_terms(market: Market) -> MarketView:
    """An administrator's settings of the market, without any samples."""
    return MarketView(
        name=market.name,
        gpu_model=market.gpu_model,
        gpus_per_node=market.gpus_per_node,
        on_demand_price=market.on_demand_price,
        most_nodes=market.max_nodes,
        period_s=settings.SPOT_PERIOD_S,
        mixes=market.mix and settings.MAX_NODES_PER_JOB > 1,
        changeover_s=market.changeover_s,
        provisioned=bool(market.provisioner),
    )


def drawing_weights(market: Market) -> dict[str, float]:
    """Weights by which jobs draw their decider; SPOT_DECIDER names one for all."""
    if settings.SPOT_DECIDER:
        return {settings.SPOT_DECIDER: 1.0}
    return {row.decider: row.weight for row in DeciderWeight.objects.filter(market=market)}


def weights_in_force(market: Market) -> list[tuple[str, float, int]]:
    """Each decider, its weight, and how many jobs it was learnt from."""
    rows = list(DeciderWeight.objects.filter(market=market))
    if not rows:
        return [(name, weight, 0) for name, weight in sorted(Selection.among(list(POOL)).weights.items())]
    return [(row.decider, row.weight, row.jobs) for row in rows]


def horizon_errors(market: Market) -> list[HorizonError]:
    """How far off the forecasts were, by how far ahead they looked."""
    return [_error(market, horizon) for horizon in range(1, AHEAD + 1)]


def _error(market: Market, horizon: int) -> HorizonError:
    rows = MarketForecast.objects.filter(market=market, horizon=horizon, judged=True).order_by("-made_at")
    wrong: dict[str, list[float]] = defaultdict(list)
    for row in rows[:JUDGED]:
        if row.price is not None and row.actual_price is not None:
            wrong["price"].append(abs(row.price - row.actual_price))
        if row.available is not None and row.actual_available is not None:
            wrong["available"].append(abs(row.available - row.actual_available))
    return HorizonError(
        horizon=horizon,
        judged=max(map(len, wrong.values()), default=0),
        price=_mean(wrong["price"]),
        available=_mean(wrong["available"]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
