"""A report of one comparison in one HTML page.

It holds a table of the measures and the charts behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from scheduler.simulator.metrics import Metrics
from scheduler.simulator.world.runs import Run

if TYPE_CHECKING:
    from scheduler.simulator.scenario import Scenario

_POINTS = 400  # of a curve; more cannot be seen
_LISTED = 100  # refused rows in the page


@dataclass(frozen=True, slots=True)
class Result:
    """The simulation of a policy. `figures` is its object in the JSON output."""

    policy: str
    runs: list[Run]
    metrics: Metrics
    figures: dict[str, Any]


def html(results: list[Result], scenario: Scenario) -> str:
    """The whole page; charts work without a network."""
    charts = [
        _figure(
            "Job completion time", "JCT (s)", "share of jobs", [_ecdf(one, _jct(one)) for one in results]
        ),
        _figure("Waiting time", "wait (s)", "share of jobs", [_ecdf(one, _wait(one)) for one in results]),
        _figure("GPUs in use", "time (s)", "GPUs", [_in_use(one) for one in results], log=False),
    ]
    parts = [
        chart.to_html(full_html=False, include_plotlyjs=number == 0) for number, chart in enumerate(charts)
    ]
    title = f"{len(scenario.trace.jobs)} jobs on {scenario.cluster.total_gpus} GPUs, load {scenario.load:.2f}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{_table(results)}{''.join(parts)}"
        f"{_refusals(scenario)}</html>"
    )


_STYLE = (
    "body{font-family:system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #ccc}"
    "td:first-child,th:first-child{text-align:left}"
)


def _table(results: list[Result]) -> str:
    """Measures down, policies across."""
    head = "".join(f"<th scope=col>{escape(one.policy)}</th>" for one in results)
    rows = [one.metrics.as_dict() for one in results]
    body = "".join(
        f"<tr><td>{escape(name)}</td>{''.join(f'<td>{row[name]:,.6g}</td>' for row in rows)}</tr>"
        for name in rows[0]
    )
    return f"<table><tr><th scope=col>measure</th>{head}</tr>{body}</table>"


def _refusals(scenario: Scenario) -> str:
    refused = scenario.refused
    rows = [f"<li>row {one.row} {escape(one.job_id)}: {escape(one.reason)}</li>" for one in refused[:_LISTED]]
    return f"<h2>Refused: {len(refused)}</h2><ul>{''.join(rows)}</ul>"


def _figure(title: str, x: str, y: str, curves: list[Any], *, log: bool = True) -> go.Figure:
    figure = go.Figure(curves)
    figure.update_layout(title=title, xaxis_title=x, yaxis_title=y, template="plotly_white", height=420)
    if log:
        figure.update_xaxes(type="log")
    return figure


def _jct(result: Result) -> list[float]:
    return [run.finished - run.job.submit_s for run in result.runs if run.finished is not None]


def _wait(result: Result) -> list[float]:
    """Waits below a second are drawn as a second: the axis is logarithmic."""
    return [
        max(run.first_start - run.job.submit_s, 1.0) for run in result.runs if run.first_start is not None
    ]


def _ecdf(result: Result, values: list[float]) -> go.Scatter:
    shares = np.linspace(0, 1, _POINTS)
    quantiles = np.quantile(values, shares) if values else np.zeros(_POINTS)
    return go.Scatter(x=quantiles, y=shares, name=result.policy, mode="lines")


def _in_use(result: Result) -> go.Scatter:
    """Draw the GPUs held over time.

    A job counts as holding what it asked for from its first start to its finish.
    """
    spans = [(run.first_start, run.finished, run.job.whole_gpus) for run in result.runs
             if run.first_start is not None and run.finished is not None]  # fmt: skip
    times = np.array([at for start, end, _ in spans for at in (start, end)])
    steps = np.array([change for _, _, gpus in spans for change in (gpus, -gpus)])
    order = np.argsort(times, kind="stable")
    held = np.cumsum(steps[order])
    pick = np.linspace(0, len(held) - 1, min(_POINTS, len(held))).astype(int)
    return go.Scatter(
        x=times[order][pick], y=held[pick], name=result.policy, mode="lines", line={"shape": "hv"}
    )
