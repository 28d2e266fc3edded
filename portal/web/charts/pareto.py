"""Cost against duration of a job, place by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from django.conf import settings

from knowledge.core.domain.types import Option
from portal.web.charts.chart import Trace, axis, figure_json, look_of
from portal.web.common.param_fields import PREFIX
from portal.web.templatetags.portal_format import duration, money, number


def pick(option: Option) -> dict[str, str]:
    """The form's values that fix the option's place."""
    place = {"gpu_model": option.gpu_model, "number_gpus": option.gpus, "number_nodes": option.nodes}
    return {PREFIX + name: str(value) for name, value in place.items()}


def price_of(option: Option, *, priced: bool) -> float:
    """Cost where nodes have prices, else GPU hours."""
    return option.cost.value if priced else option.duration_s.value * option.gpus / 3600


def tradeoff(options: Sequence[Option]) -> dict[str, Any]:
    """Chart time against cost, or against GPU time without prices.

    Each GPU model has a look of its own. A ring marks the first option, the recommended one. Points
    carry the form's values in `customdata`, so that a click can fix their place.
    """
    priced = any(option.cost.value for option in options)
    scale, unit = _unit(options)
    models = sorted({option.gpu_model for option in options})
    looks = {model: look_of(number) for number, model in enumerate(models)}
    groups = [(model, [o for o in options if o.gpu_model == model]) for model in models]
    ring = {"color": "var(--bs-body-color)", "symbol": "circle-open", "size": 20, "line": {"width": 2}}
    traces = [_trace(model, group, {**looks[model], "size": 10}, scale, priced) for model, group in groups]
    traces.append(_trace("recommended", list(options[:1]), ring, scale, priced))
    layout = go.Layout(
        xaxis=axis(f"duration, {unit}", rangemode="tozero"),
        yaxis=axis(_cost_title() if priced else "GPU hours", rangemode="tozero"),
        hovermode="closest",
        showlegend=True,
        height=340,  # the legend of many GPU models takes its part of it
    )
    return {**figure_json(traces, layout), "summary": _summary(options, priced=priced)}


def _cost_title() -> str:
    return f"cost, {settings.CURRENCY}" if settings.CURRENCY else "cost"


def _unit(options: Sequence[Option]) -> tuple[float, str]:
    longest = max((option.duration_s.value for option in options), default=0.0)
    return (
        (3600.0, "hours") if longest > 2 * 3600 else (60.0, "minutes") if longest > 120 else (1.0, "seconds")
    )


def _trace(name: str, options: list[Option], marker: dict[str, Any], scale: float, priced: bool) -> Trace:
    return go.Scatter(
        mode="markers",
        name=name,
        marker=marker,
        x=[option.duration_s.value / scale for option in options],
        y=[price_of(option, priced=priced) for option in options],
        text=[f"{o.gpus} × {o.gpu_model}, {duration(o.duration_s.value)}" for o in options],
        hoverinfo="text",
        customdata=[pick(option) for option in options],
    )


def _summary(options: Sequence[Option], *, priced: bool) -> str:
    if not options:
        return "There are no options to choose from."
    fastest = min(options, key=lambda option: option.duration_s.value)
    cheapest = min(options, key=lambda option: price_of(option, priced=priced))
    least = price_of(cheapest, priced=priced)
    return (
        f"Fastest: {_described(fastest)} in {duration(fastest.duration_s.value)}."
        f" Cheapest: {_described(cheapest)} for"
        f" {money(least) if priced else f'{number(least)} GPU hours'}. Select a point to use those GPUs."
    )


def _described(option: Option) -> str:
    return f"{option.gpus} × {option.gpu_model}"
