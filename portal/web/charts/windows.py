"""Maintenance windows as a calendar: one line for each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import plotly.graph_objects as go

from portal.web.charts.chart import FIRST, SECOND, Chart, Trace, by_clock, time_axis, when
from scheduler.models import MaintenanceWindow

LINE_PX, SPACE_PX, LEAST_PX = 28, 110, 220


def windows_chart(windows: Sequence[MaintenanceWindow], teams: Mapping[int, str], now: datetime) -> Chart:
    """Bars from begin to end on the lines of the nodes, from now on.

    teams: for which each window is; empty for none.
    """
    nodes = sorted({node.name for window in windows for node in window.nodes.all()}, reverse=True)
    closed = [window for window in windows if window.team_id is None]
    reserved = [window for window in windows if window.team_id is not None]
    traces = [("maintenance", closed, SECOND), ("reserved for a team", reserved, FIRST)]
    return Chart.drawn(
        name="windows",
        title="Closed nodes",
        summary=_summary(windows, now),
        data=[_trace(name, found, colour, now) for name, found, colour in traces if found],
        layout=go.Layout(
            barmode="overlay", height=max(LEAST_PX, SPACE_PX + LINE_PX * len(nodes)),
            showlegend=True, xaxis=time_axis(),
            yaxis={"type": "category", "categoryorder": "array", "categoryarray": nodes},
        ),
        columns=("node", "from", "until", "for"),
        rows=[
            (node.name, when(window.begins_at), when(window.ends_at), teams[window.pk] or "nobody")
            for window in windows
            for node in window.nodes.all()
        ],
    )  # fmt: skip


def _summary(windows: Sequence[MaintenanceWindow], now: datetime) -> str:
    in_force = sum(window.begins_at <= now for window in windows)
    s = "" if len(windows) == 1 else "s"
    ahead = min((window.begins_at for window in windows if window.begins_at > now), default=None)
    begins = f"; the next begins at {when(ahead)}" if ahead else ""
    return f"{len(windows)} window{s}, {in_force} in force now{begins}."


def _trace(name: str, windows: Sequence[MaintenanceWindow], colour: str, now: datetime) -> Trace:
    bars: list[tuple[str, datetime, datetime, str]] = [
        (node.name, max(window.begins_at, now), window.ends_at, window.note)
        for window in windows
        for node in window.nodes.all()
    ]
    return go.Bar(
        orientation="h", name=name, marker={"color": colour},
        y=[node for node, *_ in bars],
        base=[by_clock(begins) for _, begins, *_ in bars],
        x=[round((ends - begins).total_seconds() * 1000) for _, begins, ends, _ in bars],
        hovertext=[note for *_, note in bars],
    )  # fmt: skip
