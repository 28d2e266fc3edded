"""A team's guarantees and use, as a chart and in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go

from portal.web.charts.chart import FIRST, MUTED, SECOND, Chart, Trace, axis, by_clock, time_axis, when
from scheduler.core.quotas.receipt import Receipt
from scheduler.selectors.analysis.team_usage import TeamUsage

HOUR_S = 3600.0


def receipt_chart(usage: TeamUsage, starts: Sequence[datetime]) -> Chart:
    """GPU-hours of each slice.

    The used part of the guarantee and the borrowed GPUs are bars, the guarantee is a line. Where no quota is
    set, nothing is guaranteed or borrowed: the bars are all use.
    """
    x = [by_clock(moment) for moment in starts]
    return Chart.drawn(
        name="receipt", title="GPU-hours of 30 days", summary=in_words(usage.total, quotas=usage.quotas),
        data=_series(usage, x),
        layout=go.Layout(barmode="stack", xaxis=time_axis(), yaxis=axis("GPU-hours", rangemode="tozero")),
        columns=("from", "guaranteed", "used", "lent", "borrowed"),
        rows=[
            (when(moment), *(f"{_hours(seconds):,.1f}" for seconds in _figures(day)))
            for moment, day in zip(starts, usage.days, strict=True)
        ],
    )  # fmt: skip


def _series(usage: TeamUsage, x: Sequence[str]) -> list[Trace]:
    if not usage.quotas:
        return [_bars("used", [_hours(day.used_s) for day in usage.days], x, FIRST)]
    own = [_hours(day.used_s - day.borrowed_s) for day in usage.days]
    borrowed = [_hours(day.borrowed_s) for day in usage.days]
    owed = [_hours(day.guaranteed_s) for day in usage.days]
    return [
        _bars("used of the guarantee", own, x, FIRST),
        _bars("borrowed", borrowed, x, SECOND),
        go.Scatter(mode="lines", x=x, y=owed, name="guaranteed", line={"color": MUTED, "shape": "hvh"}),
    ]


def _bars(name: str, hours: Sequence[float], x: Sequence[str], color: str) -> Trace:
    return go.Bar(x=x, y=hours, name=name, marker={"color": color})


def in_words(total: Receipt, *, quotas: bool) -> str:
    """The receipt in one sentence."""
    owed, used, lent, borrowed = (f"{_hours(seconds):,.1f}" for seconds in _figures(total))
    if not quotas:
        return f"No quota is set: the team used {used} GPU-hours."
    return (
        f"The team was guaranteed {owed} GPU-hours and used {used}; {lent} of its own were lent, and"
        f" {borrowed} of those it used were borrowed."
    )


def _figures(receipt: Receipt) -> tuple[float, float, float, float]:
    return receipt.guaranteed_s, receipt.used_s, receipt.lent_s, receipt.borrowed_s


def _hours(seconds: float) -> float:
    return round(seconds / HOUR_S, 3)
