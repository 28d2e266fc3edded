"""Markets in charts: prices and availability with forecasts, and where a job ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import plotly.graph_objects as go

from portal.web.charts.chart import (
    FIRST,
    GOOD,
    HOLDS,
    MUTED,
    SECOND,
    Chart,
    Trace,
    axis,
    by_clock,
    count_axis,
    line_over_time,
    time_axis,
    when,
)
from portal.web.templatetags.portal_format import money, number
from scheduler.core.market.forecast import HorizonForecast
from scheduler.models import Market, MarketSample
from scheduler.selectors.markets.foreseen import HorizonError
from scheduler.selectors.markets.job_market import LaneSpan

LANES = {"idle": MUTED, "spot": GOOD, "on_demand": FIRST, "owned": SECOND}


def price_chart(
    market: Market,
    samples: Sequence[MarketSample],
    ahead: Sequence[HorizonForecast],
    now: datetime,
    period_s: float,
) -> Chart:
    """The spot price over time, its forecast as a band, and the on-demand price."""
    points = [(sample.at, sample.price) for sample in samples if sample.price is not None]
    band = [
        (now + timedelta(seconds=period_s * one.ahead), one.price, one.price_error or 0.0)
        for one in ahead
        if one.price is not None
    ]
    level = market.on_demand_price
    summary = "No price has been seen yet."
    if points:
        prices = [price for _, price in points]
        summary = (
            f"The spot price is {money(prices[-1])}, between {money(min(prices))} and {money(max(prices))} in"
            f" this time; on demand a GPU hour costs {money(level)}."
        )
    ends = [*[at for at, _ in points[:1]], *([band[-1][0]] if band else [now])]
    on_demand = go.Scatter(
        mode="lines", name="on demand", line={"color": MUTED, "dash": "dash"},
        x=[by_clock(at) for at in ends], y=[level for _ in ends],
    )  # fmt: skip
    return Chart.drawn(
        name="market-price", title="Price of a GPU hour", summary=summary,
        data=[*_band(band), line_over_time("spot", points, FIRST, **HOLDS), on_demand] if points else [],
        layout=go.Layout(xaxis=time_axis(), yaxis=axis("per GPU hour", rangemode="tozero"), showlegend=True),
        columns=("from", "price"), rows=[(when(at), money(price)) for at, price in points[-200:]],
    )  # fmt: skip


def availability_chart(
    market: Market,
    samples: Sequence[MarketSample],
    ahead: Sequence[HorizonForecast],
    now: datetime,
    period_s: float,
) -> Chart:
    """Spot nodes available over time, with the forecast as a band."""
    points = [(sample.at, float(sample.available)) for sample in samples if sample.available is not None]
    size = market.gpus_per_node
    band = [
        (
            now + timedelta(seconds=period_s * one.ahead),
            one.available / size,
            (one.available_error or 0.0) / size,
        )
        for one in ahead
    ]
    summary = "No availability has been seen yet."
    if points:
        none = sum(count == 0 for _, count in points)
        summary = (
            f"{number(points[-1][1])} spot nodes were available last; the most were"
            f" {number(max(count for _, count in points))}, and {none} of {len(points)} samples saw none."
        )
    top = max((count for _, count in points), default=0.0)
    return Chart.drawn(
        name="market-availability", title="Spot nodes available", summary=summary,
        data=[*_band(band), line_over_time("available", points, GOOD, **HOLDS)] if points else [],
        layout=go.Layout(
            xaxis=time_axis(), yaxis=count_axis("nodes", round(top), rangemode="tozero"),
            showlegend=True,
        ),
        columns=("from", "nodes"), rows=[(when(at), number(count)) for at, count in points[-200:]],
    )  # fmt: skip


def errors_chart(errors: Sequence[HorizonError]) -> Chart:
    """How far off forecasts of the price were, by how far ahead they looked."""
    known = [one for one in errors if one.price is not None]
    summary = "No forecast has come due yet."
    if known:
        summary = (
            f"Forecasts one period ahead were off by {money(known[0].price)} on average, those"
            f" {known[-1].horizon} ahead by {money(known[-1].price)}."
        )
    return Chart.drawn(
        name="market-errors", title="Forecast error by horizon", summary=summary,
        data=[go.Bar(
            name="price", x=[one.horizon for one in known],
            y=[one.price for one in known], marker={"color": FIRST},
        )] if known else [],
        layout=go.Layout(
            xaxis=axis("periods ahead", dtick=1),
            yaxis=axis("mean absolute error", rangemode="tozero"),
        ),
        columns=("periods ahead", "judged", "price", "nodes"),
        rows=[
            (str(one.horizon), str(one.judged), money(one.price), number(one.available)) for one in errors
            if one.judged
        ],
    )  # fmt: skip


def lanes_chart(spans: Sequence[LaneSpan], deadline: datetime | None, now: datetime) -> Chart:
    """Where a job was: idle, on spot nodes, on nodes that stay; and its deadline."""
    lanes = [lane for lane in LANES if any(span.lane == lane for span in spans)]
    seconds = {lane: sum(_lasted(span, now) for span in spans if span.lane == lane) for lane in lanes}
    durations = ", ".join(f"{seconds[lane] / 60:.0f} min {_label(lane)}" for lane in lanes)
    layout = go.Layout(
        barmode="overlay", height=130 + 36 * len(lanes), xaxis=time_axis(),
        yaxis={
            "type": "category", "categoryorder": "array", "categoryarray": [_label(lane) for lane in lanes],
        },
        showlegend=False,
    )  # fmt: skip
    if deadline:
        at = by_clock(deadline)
        line = {"color": MUTED, "dash": "dash"}
        layout.shapes = [
            {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}
        ]
    return Chart.drawn(
        name="job-lanes", title="Where it was",
        summary=f"{durations}." if durations else "It has not been anywhere yet.",
        data=[_lane(lane, [span for span in spans if span.lane == lane], now) for lane in lanes],
        layout=layout, columns=("from", "until", "where", "GPUs", "nodes"),
        rows=[
            (when(span.began_at), when(span.ended_at) if span.ended_at else "now", _label(span.lane),
             str(span.gpus), span.nodes)
            for span in spans
        ],
    )  # fmt: skip


def _lane(lane: str, spans: Sequence[LaneSpan], now: datetime) -> Trace:
    return go.Bar(
        orientation="h", name=_label(lane), marker={"color": LANES[lane]},
        y=[_label(lane) for _ in spans], base=[by_clock(span.began_at) for span in spans],
        x=[round(1000 * _lasted(span, now)) for span in spans],
        hovertext=[span.nodes for span in spans],
    )  # fmt: skip


def _lasted(span: LaneSpan, now: datetime) -> float:
    return max(0.0, ((span.ended_at or now) - span.began_at).total_seconds())


def _label(lane: str) -> str:
    return lane.replace("_", " ")


def _band(points: Sequence[tuple[datetime, float, float]]) -> list[Trace]:
    """The forecast plus and minus its mean error."""
    if not points:
        return []
    x = [by_clock(at) for at, _, _ in points]
    edge: dict[str, Any] = {"mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip"}
    low = [max(0.0, value - error) for _, value, error in points]
    high = [value + error for _, value, error in points]
    middle = line_over_time("foreseen", [(at, value) for at, value, _ in points], SECOND, dash="dot")
    return [
        go.Scatter(**edge, y=low, showlegend=False),
        go.Scatter(**edge, y=high, fill="tonexty", name="forecast", fillcolor="rgba(128,128,128,0.25)"),
        middle.update(showlegend=False),
    ]
