"""The loss curve: rows in, a Plotly figure as plain values out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

MAX_POINTS = 2000


class MetricPoint(Protocol):
    """The fields of a line of progress that charts need."""

    step: int
    loss: float | None
    eval_loss: float | None
    tokens_per_second: float | None


def loss_curve(rows: Sequence[MetricPoint]) -> dict[str, Any]:
    """Training and evaluation loss by step, as `{"data", "layout", "summary"}`."""
    training = [(row.step, row.loss) for row in rows if row.loss is not None]
    evaluation = [(row.step, row.eval_loss) for row in rows if row.eval_loss is not None]
    traces = [_line("training loss", thinned(training))]
    if evaluation:
        traces.append(_line("evaluation loss", thinned(evaluation), mode="lines+markers"))
    layout = {
        "xaxis": {"title": {"text": "optimiser step"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "loss"}},
        "showlegend": bool(evaluation),
    }
    return {"data": traces, "layout": layout, "summary": _summary(training)}


def thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most about MAX_POINTS of the points, evenly taken, the last always among them."""
    every = -(-len(points) // MAX_POINTS) or 1
    kept = list(points[::every])
    if points and kept[-1] != points[-1]:
        kept.append(points[-1])
    return kept


def _line(name: str, points: Iterable[tuple[int, float]], mode: str = "lines") -> dict[str, Any]:
    steps, values = zip(*points, strict=True) if points else ((), ())
    return {"type": "scatter", "mode": mode, "name": name, "x": list(steps), "y": list(values)}


def _summary(points: Sequence[tuple[int, float]]) -> str:
    if not points:
        return "No step has been measured yet."
    (first_step, first), (last_step, last) = points[0], points[-1]
    lowest = min(value for _, value in points)
    return (
        f"Training loss went from {first:.3f} at step {first_step:,} to {last:.3f} at step {last_step:,};"
        f" the lowest was {lowest:.3f}."
    )
