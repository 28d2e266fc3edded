"""What every chart is: a figure, its story in words, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Trace = dict[str, Any]

# Names of CSS variables; static/js/charts.js puts in the colours of the present theme.
FIRST, SECOND = "var(--chart-1)", "var(--chart-2)"
GOOD, BAD, MUTED, GAP = "var(--chart-good)", "var(--chart-bad)", "var(--chart-muted)", "var(--chart-gap)"

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
DURATION_TICKS = {
    0.1: "0.1 s", 1: "1 s", 10: "10 s", _MINUTE: "1 min", 10 * _MINUTE: "10 min", _HOUR: "1 h",
    10 * _HOUR: "10 h", 4 * _DAY: "4 d", 40 * _DAY: "40 d",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """`name` is unique on its page; `rows` are texts, one for each of `columns`."""

    name: str
    title: str
    summary: str
    data: list[Trace]
    layout: dict[str, Any]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]] = ()

    @property
    def figure(self) -> dict[str, Any]:
        """What Plotly draws."""
        return {"data": self.data, "layout": self.layout}


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, **more}


def duration_axis(title: str) -> dict[str, Any]:
    """A logarithmic axis of seconds with ticks that people read as times."""
    ticks = {"tickvals": list(DURATION_TICKS), "ticktext": list(DURATION_TICKS.values())}
    return axis(title, type="log", **ticks)
