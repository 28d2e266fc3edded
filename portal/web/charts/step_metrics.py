"""The charts of a job's step metrics.

Rows go in; a Plotly figure comes out, as plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import plotly.graph_objects as go

from portal.web.charts.chart import Trace, axis, figure_json
from trainer.step_metrics import STEP_CHARTS, Caption, StepMetric

MAX_POINTS = 2000
Points = Sequence[tuple[int, float]]


class MetricRow(Protocol):
    """The fields of a line of progress that charts need."""

    step: int

    def value(self, metric: StepMetric) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Heading:
    """The text and address of a chart before its figure is there."""

    name: str

    @property
    def title(self) -> str:
        return self.name.replace("-", " ").capitalize()

    @property
    def label(self) -> str:
        """The chart in words, for people who do not see it."""
        return f"{_measure(self.name).capitalize()} by optimiser step"


HEADINGS = tuple(map(Heading, STEP_CHARTS))


def step_chart(name: str, rows: Sequence[MetricRow]) -> dict[str, Any]:
    """Draw the chart with this name as `{"data", "layout", "summary"}`.

    Its first metric is always drawn.
    """
    first, *others = STEP_CHARTS[name]
    points = _points(first, rows)
    traces = [_line(first, points)]
    traces += [_line(metric, known) for metric in others if (known := _points(metric, rows))]
    from_zero = {} if first.low < 0 else {"rangemode": "tozero"}
    powers = {} if first.unit else {"exponentformat": "e"}  # nobody reads a learning rate as 150µ
    layout = go.Layout(
        xaxis=axis("optimiser step", rangemode="tozero"),
        yaxis={"title": {"text": _measure(name), "standoff": 10}, **from_zero, **powers},
        showlegend=len(traces) > 1,
    )
    return {**figure_json(traces, layout), "summary": _summary(first, points, measured=bool(rows))}


def thinned(points: Points) -> Points:
    """Thin the points evenly to at most about MAX_POINTS.

    The last one is always among them.
    """
    every = -(-len(points) // MAX_POINTS) or 1
    kept = list(points[::every])
    if points and kept[-1] != points[-1]:
        kept.append(points[-1])
    return kept


def _measure(name: str) -> str:
    """The title of a chart's vertical axis."""
    return STEP_CHARTS[name][0].unit or name.replace("-", " ")


def _points(metric: StepMetric, rows: Iterable[MetricRow]) -> Points:
    return [(row.step, value) for row in rows if (value := row.value(metric)) is not None]


def _line(metric: StepMetric, points: Points) -> Trace:
    shown = thinned(points)
    return go.Scatter(
        mode="lines+markers" if metric.evaluation else "lines",
        name=metric.unit or metric.label,
        x=[step for step, _ in shown],
        y=[value for _, value in shown],
    )


def _summary(metric: StepMetric, points: Points, *, measured: bool) -> str:
    if not points:
        return f"No {metric.label} was reported." if measured else "No step has been measured yet."
    values = [value for _, value in points]
    low, high, middle = (format(part(values), metric.digits) for part in (min, max, median))
    if metric.caption is Caption.SPREAD:
        what = f"{middle} {metric.unit}" if metric.unit else f"{metric.label.capitalize()} {middle}"
        return f"{what} in the median of its reports, between {low} and {high}."
    (first_step, first), (last_step, last) = points[0], points[-1]
    if len(points) == 1:
        return f"{metric.label.capitalize()} was {last:{metric.digits}} at step {last_step:,}."
    return (
        f"{metric.label.capitalize()} went from {first:{metric.digits}} at step {first_step:,} to"
        f" {last:{metric.digits}} at step {last_step:,};"
        f" the {metric.caption} was {low if metric.caption is Caption.LOWEST else high}."
    )
