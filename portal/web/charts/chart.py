"""The parts of every chart.

They are a figure, built of Plotly's objects in one template, its story in words, and its numbers as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import plotly.graph_objects as go
from django.utils import timezone
from plotly.basedatatypes import BaseTraceType

from portal.accounts.time_zones import local
from portal.web.templatetags.portal_format import duration

Trace: TypeAlias = BaseTraceType

# Names of CSS variables; static/js/charts.js puts in the colours of the present theme.
FIRST, SECOND = "var(--chart-1)", "var(--chart-2)"
GOOD, BAD, MUTED, GAP = "var(--chart-good)", "var(--chart-bad)", "var(--chart-muted)", "var(--chart-gap)"

KINDS = tuple(f"var(--chart-kind-{number})" for number in range(1, 9))
# One more than there are colours: looks repeat only after 72 kinds.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "pentagon", "hexagon")

FEW = 6  # ticks
FEW_POINTS = 3
HOLDS = {"shape": "hv"}  # of a line whose values hold until the next one
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
DURATION_TICKS: dict[float, str] = {
    0.1: "0.1 s", 1: "1 s", 10: "10 s", _MINUTE: "1 min", 5 * _MINUTE: "5 min", 20 * _MINUTE: "20 min",
    _HOUR: "1 h", 4 * _HOUR: "4 h", _DAY: "1 d", 4 * _DAY: "4 d", 16 * _DAY: "16 d", 64 * _DAY: "64 d",
}  # fmt: skip
# For values that are close to each other: from a second on two lie between any value and its triple.
CLOSE_DURATION_TICKS: dict[float, str] = {
    **DURATION_TICKS, 0.2: "0.2 s", 0.5: "0.5 s", **{n: f"{n} s" for n in (2, 3, 5, 7, 15, 20, 30, 40)},
    **{n * _MINUTE: f"{n} min" for n in (1.5, 2, 3, 7, 10, 15, 30, 40)},
    **{n * _HOUR: f"{n} h" for n in (1.5, 2, 3, 6, 8, 12, 16)},
    **{n * _DAY: f"{n} d" for n in (1.5, 2, 3, 6, 8, 12, 24, 32, 48)},
}  # fmt: skip
CLOSE = 6.0  # the largest value over the smallest
# The looks of every chart; what a figure says of itself comes before it. The legend stands above the plot and
# grows upwards, however many lines it takes on a narrow screen.
_AXIS = {
    "gridcolor": "var(--bs-border-color)", "zerolinecolor": "var(--bs-border-color)",
    "linecolor": "var(--bs-border-color)", "automargin": True,
}  # fmt: skip
TEMPLATE: dict[str, Any] = go.layout.Template(
    layout=go.Layout(
        colorway=[f"var(--chart-{number})" for number in range(1, 5)],
        font={"size": 12},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 50, "r": 10, "t": 10, "b": 40},
        height=280,
        xaxis=_AXIS,
        yaxis=_AXIS,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
).to_plotly_json()
Ends = tuple[float, float]  # smallest and largest value that an axis shows
FAR: Ends = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """`name` is unique on its page; `rows` are texts, one for each of `columns`.

    data, layout: the figure as JSON, as Plotly draws it.
    """

    name: str
    title: str
    summary: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]] = ()

    @classmethod
    def drawn(
        cls,
        *,
        name: str,
        title: str,
        summary: str,
        data: Iterable[Trace],
        layout: go.Layout,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]] = (),
    ) -> Chart:
        """A chart of Plotly's own objects, in the portal's template."""
        return cls(
            name=name,
            title=title,
            summary=summary,
            **figure_json(data, layout),
            columns=columns,
            rows=rows,
        )

    @property
    def figure(self) -> dict[str, Any]:
        """The figure for Plotly."""
        return {"data": self.data, "layout": self.layout}


def figure_json(data: Iterable[Trace], layout: go.Layout) -> dict[str, Any]:
    """The figure as JSON, `{"data", "layout"}`, in the portal's template."""
    return {
        "data": [trace.to_plotly_json() for trace in data],
        "layout": {**layout.to_plotly_json(), "template": TEMPLATE},
    }


def look_of(number: int) -> dict[str, Any]:
    """Return colour and symbol of the kind with this number, from 0.

    So kinds can be told apart both on screen and in print.
    """
    return {"color": KINDS[number % len(KINDS)], "symbol": SYMBOLS[number % len(SYMBOLS)]}


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, **more}


def time_axis(**more: Any) -> dict[str, Any]:
    """An axis of moments, each from `by_clock`."""
    return axis(f"time in {timezone.get_current_timezone_name()}", type="date", **more)


def by_clock(moment: datetime) -> str:
    """Return a moment by the reader's clock, without a zone.

    Plotly draws none in another zone than the one it is written in.
    """
    return local(moment).replace(tzinfo=None).isoformat(timespec="seconds")


def when(moment: datetime) -> str:
    """Date and time to the minute, by the reader's clock."""
    return f"{local(moment):%Y-%m-%d %H:%M}"


def line_over_time(
    name: str, points: Sequence[tuple[datetime, float | None]], colour: str, **line: str
) -> Trace:
    """A line through moments; None is a gap.

    Few points are marked, as a line needs two ends.
    """
    few = sum(value is not None for _, value in points) < FEW_POINTS
    return go.Scatter(
        mode="lines+markers" if few else "lines", name=name,
        x=[by_clock(moment) for moment, _ in points], y=[value for _, value in points],
        line={"color": colour, **line},
    )  # fmt: skip


def count_axis(title: str, top: int, **more: Any) -> dict[str, Any]:
    """An axis of things that come whole: no ticks between 0 and 1 where there are few."""
    return axis(title, **more, **({"dtick": 1} if top < FEW else {}))


def log_axis(title: str, ends: Ends = FAR) -> dict[str, Any]:
    """A logarithmic axis with ticks at 1, 2, 5, 10 and so on."""
    digits = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8) if _close(ends) else (1, 2, 5)
    ticks = [digit * 10.0**power for power in range(-1, 9) for digit in digits]
    return axis(title, type="log", tickvals=ticks, ticktext=[_tick(value) for value in ticks])


def _tick(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def duration_axis(title: str, ends: Ends = FAR) -> dict[str, Any]:
    """A logarithmic axis of seconds with ticks that people read as times."""
    ticks = CLOSE_DURATION_TICKS if _close(ends) else DURATION_TICKS
    return axis(title, type="log", tickvals=list(ticks), ticktext=list(ticks.values()))


def linear_duration_axis(title: str, longest_s: float) -> dict[str, Any]:
    """An axis of seconds from 0 on, with at most `FEW` ticks at whole units after it."""
    steps = [1, 2, 5, 10, 20, *(n * _MINUTE for n in (1, 2, 5, 10, 20)), *(n * _HOUR for n in (1, 2, 4, 12))]
    days = -(-longest_s // (FEW * _DAY)) * _DAY
    step = next((step for step in steps if longest_s <= FEW * step), days)
    ticks = [number * step for number in range(FEW + 1) if number * step <= longest_s] if longest_s else [0]
    return axis(title, tickvals=ticks, ticktext=[duration(tick) if tick else "0" for tick in ticks])


def _close(ends: Ends) -> bool:
    return ends[1] <= CLOSE * ends[0]
