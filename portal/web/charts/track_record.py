"""Promised against measured: scatter with intervals, and the error over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median
from typing import Any

import plotly.graph_objects as go

from knowledge.core.domain.wording import counted
from knowledge.core.evaluate.drift import absolute_error
from portal.web.charts.chart import (
    FAR,
    FIRST,
    GOOD,
    MUTED,
    SECOND,
    Chart,
    Trace,
    axis,
    duration_axis,
    line_over_time,
    log_axis,
    time_axis,
    when,
)
from portal.web.templatetags.portal_format import FIGURES, percent
from scheduler.selectors.analysis.track_record import Pair
from scheduler.selectors.figures.promise import is_inside

SHOWN = 200
WINDOW = 25
TABLE_ROWS = 25
MARKS = {
    True: ("within the interval", GOOD, "circle"),
    False: ("outside", SECOND, "diamond"),
    None: ("no interval", MUTED, "circle-open"),
}
UNITS = {"peak_memory_bytes": 2.0**30}  # what one unit of the axis is, where it is not 1
LINES = {"duration_s": FIRST, "tokens_per_second": SECOND, "peak_memory_bytes": GOOD}


def inside(pair: Pair) -> bool | None:
    """Did the interval hold the measured value? None without an interval."""
    return is_inside(pair.measured, pair.low, pair.high)


def scatter(target: str, pairs: Sequence[Pair]) -> Chart:
    """Chart the latest runs.

    A line shows where promises come true, and a bar shows each interval.
    """
    label, text = FIGURES[target]
    shown = list(pairs)[-SHOWN:]
    drawn = [_scaled(pair, UNITS.get(target, 1.0)) for pair in shown]
    promised = [value for p in drawn for value in (p.low or p.promised, p.promised, p.high or p.promised)]
    return Chart.drawn(
        name=f"scatter-{target}",
        title=label,
        summary=_scatter_summary(pairs, shown),
        data=_traces(drawn),
        layout=go.Layout(
            xaxis=_scale(target, "promised", promised),
            yaxis=_scale(target, "measured", [pair.measured for pair in drawn]),
            showlegend=True, height=360,
        ),
        columns=("ended", "promised", "interval", "measured", ""),
        rows=[_row(pair, text) for pair in reversed(shown[-TABLE_ROWS:])],
    )  # fmt: skip


def _scaled(pair: Pair, unit: float) -> Pair:
    low, high = (None if bound is None else bound / unit for bound in (pair.low, pair.high))
    return replace(pair, promised=pair.promised / unit, measured=pair.measured / unit, low=low, high=high)


def _scale(target: str, title: str, values: Sequence[float]) -> dict[str, Any]:
    ends = (min(values), max(values)) if values else FAR
    if target == "duration_s":
        return duration_axis(title, ends)
    return log_axis(f"{title}, {'GiB' if target in UNITS else 'tokens/s'}", ends)


def _traces(pairs: Sequence[Pair]) -> list[Trace]:
    """Return the traces of the scatter chart.

    They are the identity line, then the kept promises, the broken ones, and those without an
    interval.
    """
    if not pairs:
        return []
    values = [value for pair in pairs for value in (pair.promised, pair.measured)]
    groups = [(mark, [p for p in pairs if inside(p) is kind]) for kind, mark in MARKS.items()]
    line = _identity([_short(min(values)), _short(max(values))])
    return [line, *(_points(*mark, group) for mark, group in groups if group)]


def _identity(ends: Sequence[float]) -> Trace:
    return go.Scatter(
        mode="lines", name="as promised", x=ends, y=ends,
        line={"color": MUTED, "dash": "dash", "width": 1}, hoverinfo="skip",
    )  # fmt: skip


def _points(name: str, colour: str, symbol: str, pairs: Sequence[Pair]) -> Trace:
    return go.Scatter(
        mode="markers", name=name,
        x=[_short(p.promised) for p in pairs], y=[_short(p.measured) for p in pairs],
        marker={"color": colour, "symbol": symbol, "size": 6},
        error_x={
            "type": "data", "symmetric": False, "thickness": 0.5, "width": 0, "color": colour,
            "array": [_short((p.high or p.promised) - p.promised) for p in pairs],
            "arrayminus": [_short(p.promised - (p.low or p.promised)) for p in pairs],
        },
    )  # fmt: skip


def _short(value: float) -> float:
    """Four digits are enough to draw, and make the page small."""
    return float(f"{value:.4g}")


def _scatter_summary(pairs: Sequence[Pair], shown: Sequence[Pair]) -> str:
    if not pairs:
        return "No run with a promise has been measured in this period."
    middle = median(absolute_error(pair.promised, pair.measured) for pair in pairs)
    summary = f"The median error of the latest {counted(len(pairs), 'promise')} is {percent(middle)}."
    if len(shown) < len(pairs):
        summary += f" Only the latest {len(shown)} are shown."
    return summary


def _row(pair: Pair, text: Callable[[Any], str]) -> tuple[str, ...]:
    verdict = {True: "inside", False: "outside", None: ""}[inside(pair)]
    interval = f"{text(pair.low)} to {text(pair.high)}"
    return when(pair.at), text(pair.promised), interval, text(pair.measured), verdict


def error_over_time(pairs: Mapping[str, Sequence[Pair]]) -> Chart:
    """Chart for each figure the median error of the WINDOW runs before.

    So a drift is visible.
    """
    lines = {target: rolling_median(found) for target, found in pairs.items()}
    drawn = {target: line for target, line in lines.items() if line}
    summary = "; ".join(
        f"{_named(target)} {percent(line[0][1])} to {percent(line[-1][1])}" for target, line in drawn.items()
    )
    return Chart.drawn(
        name="error",
        title="Error over time",
        summary=f"Median error over {WINDOW} consecutive runs, first to last: {summary}."
        if drawn
        else f"Too few runs: at least {WINDOW} are needed.",
        data=[_error_line(target, line) for target, line in drawn.items()],
        layout=go.Layout(
            xaxis=time_axis(), showlegend=True,
            yaxis=axis("median absolute error", tickformat=".0%", rangemode="tozero"),
        ),
        columns=("figure", "ended", f"median error of the {WINDOW} runs up to then"),
        rows=[
            (FIGURES[target][0], when(at), percent(value))
            for target, line in drawn.items()
            for at, value in line[:: max(1, len(line) // 10)]
        ],
    )  # fmt: skip


def _named(target: str) -> str:
    """The figure's label within a sentence."""
    label = FIGURES[target][0]
    return label[0].lower() + label[1:]


def _error_line(target: str, line: Sequence[tuple[datetime, float]]) -> Trace:
    return line_over_time(_named(target), [(at, round(value, 4)) for at, value in line], LINES[target])


def rolling_median(pairs: Sequence[Pair]) -> list[tuple[datetime, float]]:
    """Return (end of the last run, median error) over every WINDOW runs in a row.

    At most about SHOWN pairs are returned.
    """
    errors = [absolute_error(pair.promised, pair.measured) for pair in pairs]
    ends = range(WINDOW, len(pairs) + 1)
    every = max(1, len(ends) // SHOWN)
    return [(pairs[end - 1].at, median(errors[end - WINDOW : end])) for end in ends[::every]]
