"""Charts of distributions.

A stepped area is drawn on a logarithmic axis with three quantiles marked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import plotly.graph_objects as go

from knowledge.core.domain.wording import counted
from portal.web.charts.chart import (
    FAR,
    FIRST,
    SECOND,
    Chart,
    Ends,
    Trace,
    count_axis,
    duration_axis,
    log_axis,
)
from portal.web.templatetags.portal_format import duration
from scheduler.selectors.analysis.histogram import Histogram

QUANTILES = {0.5: "p50", 0.95: "p95", 0.99: "p99"}
MARK_HEIGHTS = {"p50": 1.03, "p95": 1.03, "p99": 1.13}  # the last two are often neighbours
COARSE = 25  # bins of the drawing: a factor of e to the quarter each


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLabels:
    """The words and axis of a distribution's chart.

    `measure` is as in `The JCT of half of the jobs was at most 5 min`.
    """

    name: str
    title: str
    measure: str
    unit: str
    text: Callable[[float], str]
    axis: Callable[[Ends], dict[str, Any]]


def times(value: float) -> str:
    """A slowdown, e.g. `1.3 times`."""
    return f"{value:.1f} times" if value < 100 else f"{value:,.0f} times"


JCT = ChartLabels(
    name="jct", title="Job completion time", measure="The time from submission to success", unit="jobs",
    text=duration, axis=partial(duration_axis, "from submission to success"),
)  # fmt: skip
WAIT = ChartLabels(
    name="wait", title="Waiting time", measure="The time queued", unit="jobs",
    text=duration, axis=partial(duration_axis, "time queued"),
)  # fmt: skip
SLOWDOWN = ChartLabels(
    name="slowdown", title="Slowdown", measure="Completion time divided by running time", unit="jobs",
    text=times, axis=partial(log_axis, "completion time / running time"),
)  # fmt: skip


def distribution(found: Histogram, words: ChartLabels) -> Chart:
    """The distribution drawn, in words, and as a table of its bins."""
    bins = found.coarse(COARSE)
    top = max((count for _, _, count in bins), default=0)
    marks = [
        (name, value) for share, name in QUANTILES.items() if (value := found.quantile(share)) is not None
    ]
    return Chart.drawn(
        name=words.name,
        title=words.title,
        summary=_summary(found, marks, words),
        data=[_area(bins), *(_mark(name, value, top, words) for name, value in marks)] if bins else [],
        layout=go.Layout(
            xaxis=words.axis((bins[0][0], bins[-1][1]) if bins else FAR),
            yaxis=count_axis(words.unit, top, range=[0, 1.3 * top]),
            showlegend=False,
        ),
        columns=("from", "to", words.unit),
        rows=[(words.text(low), words.text(high), f"{count:,}") for low, high, count in bins if count],
    )


def _area(bins: list[tuple[float, float, int]]) -> Trace:
    edges = [low for low, _, _ in bins] + [bins[-1][1]]
    return go.Scatter(
        mode="lines", name="number", x=edges, fill="tozeroy",
        y=[count for _, _, count in bins] + [0], line={"shape": "hv", "color": FIRST},
    )  # fmt: skip


def _mark(name: str, value: float, top: int, words: ChartLabels) -> Trace:
    return go.Scatter(
        mode="lines+text", name=f"{name}: {words.text(value)}", x=[value, value],
        y=[0, top * MARK_HEIGHTS[name]], text=["", name],
        textposition="top center", hoverinfo="name",
        line={"color": SECOND, "dash": "dot", "width": 1.5},
    )  # fmt: skip


def _summary(found: Histogram, marks: list[tuple[str, float]], words: ChartLabels) -> str:
    if not found.total:
        return f"No {words.unit} in this period."
    listed = ", ".join(f"{words.text(value)} ({name})" for name, value in marks)
    return f"{words.measure} over {counted(found.total, words.unit.removesuffix('s'))}: {listed}."
