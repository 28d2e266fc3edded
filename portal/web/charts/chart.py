"""What every chart is: a figure, its story in words, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Trace = dict[str, Any]

# Names of CSS variables; static/js/charts.js puts in the colours of the present theme.
FIRST, SECOND = "var(--chart-1)", "var(--chart-2)"
GOOD, BAD, MUTED, GAP = "var(--chart-good)", "var(--chart-bad)", "var(--chart-muted)", "var(--chart-gap)"

KINDS = tuple(f"var(--chart-kind-{number})" for number in range(1, 9))
# One more than there are colours: looks repeat only after 72 kinds.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "pentagon", "hexagon")

FEW = 6  # ticks
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
DURATION_TICKS = {
    0.1: "0.1 s", 1: "1 s", 10: "10 s", _MINUTE: "1 min", 5 * _MINUTE: "5 min", 20 * _MINUTE: "20 min",
    _HOUR: "1 h", 4 * _HOUR: "4 h", _DAY: "1 d", 4 * _DAY: "4 d", 16 * _DAY: "16 d", 64 * _DAY: "64 d",
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


def look_of(number: int) -> dict[str, Any]:
    """Colour and symbol of the kind with this number, from 0: eye and ink both tell kinds apart."""
    return {"color": KINDS[number % len(KINDS)], "symbol": SYMBOLS[number % len(SYMBOLS)]}


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, **more}


def count_axis(title: str, top: int, **more: Any) -> dict[str, Any]:
    """An axis of things that come whole: no ticks between 0 and 1 where there are few."""
    return axis(title, **more, **({"dtick": 1} if top < FEW else {}))


def log_axis(title: str) -> dict[str, Any]:
    """A logarithmic axis with ticks at 1, 2, 5, 10 and so on."""
    ticks = [digit * 10.0**power for power in range(-1, 9) for digit in (1, 2, 5)]
    return axis(title, type="log", tickvals=ticks, ticktext=[_tick(value) for value in ticks])


def _tick(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def duration_axis(title: str) -> dict[str, Any]:
    """A logarithmic axis of seconds with ticks that people read as times."""
    ticks = {"tickvals": list(DURATION_TICKS), "ticktext": list(DURATION_TICKS.values())}
    return axis(title, type="log", **ticks)
