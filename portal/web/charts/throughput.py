"""How fast a job trains, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from portal.web.charts.loss import MetricPoint, thinned


def throughput_curve(rows: Sequence[MetricPoint]) -> dict[str, Any]:
    """Tokens per second by step, as `{"data", "layout", "summary"}`."""
    points = [(row.step, row.tokens_per_second) for row in rows if row.tokens_per_second is not None]
    shown = thinned(points)
    trace = {
        "type": "scatter",
        "mode": "lines",
        "name": "tokens per second",
        "x": [step for step, _ in shown],
        "y": [rate for _, rate in shown],
    }
    layout = {
        "xaxis": {"title": {"text": "optimiser step"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "tokens per second"}, "rangemode": "tozero"},
        "showlegend": False,
    }
    return {"data": [trace], "layout": layout, "summary": _summary([rate for _, rate in points])}


def _summary(rates: Sequence[float]) -> str:
    if not rates:
        return "No step has been measured yet."
    low, high = min(rates), max(rates)
    return f"{median(rates):,.0f} tokens per second in the median, between {low:,.0f} and {high:,.0f}."
