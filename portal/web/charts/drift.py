"""Charts of whether promises still hold.

They show the nightly judgement of recent runs, day by day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from knowledge.core.domain.wording import counted
from knowledge.models import TrackRecord
from portal.web.charts.chart import BAD, FIRST, MUTED, SECOND, Chart, Trace, axis
from portal.web.templatetags.portal_format import percent

PROMISED = 0.8  # how often an interval should hold
FEW = 10  # below this many runs a share says nothing
TICKS = 8


def nightly(records: Sequence[TrackRecord]) -> Chart:
    """Chart coverage and median error of tokens per second.

    There is one point a day, oldest first; alarms stand out.
    """
    return Chart.drawn(
        name="nightly",
        title="Daily check of promises",
        summary=_summary(records),
        data=[*_lines(records), *_alarms(records)],
        layout=go.Layout(
            xaxis=_days(records), yaxis=axis("share", tickformat=".0%", rangemode="tozero"),
            showlegend=True,
        ),
        columns=("day", "runs", "within the interval", "median error", "alarm"),
        rows=[_row(record) for record in reversed(records)],
    )  # fmt: skip


def _summary(records: Sequence[TrackRecord]) -> str:
    if not records:
        return "No run with a promise has been checked yet; the check runs once a day."
    last, alarms = records[-1], sum(1 for record in records if record.alarm)
    days = counted(len(records), "day")
    alarms_said = f"There was an alarm on {alarms} of {days}." if alarms else f"There was no alarm in {days}."
    if last.runs < FEW:
        runs = counted(last.runs, "run")
        return f"On {last.day}, only {runs} could be checked, too few to say anything. {alarms_said}"
    return (
        f"On {last.day}, {percent(last.coverage)} of the last {counted(last.runs, 'run')} ended within the"
        f" 80 % interval, with a median error of {percent(last.median_error)} in tokens per second."
        f" {alarms_said}"
    )


def _row(record: TrackRecord) -> tuple[str, ...]:
    shares = percent(record.coverage), percent(record.median_error)
    return f"{record.day}", f"{record.runs}", *shares, record.alarm


def _days(records: Sequence[TrackRecord]) -> dict[str, Any]:
    """Return an axis with ticks on days that were judged.

    Around a single day Plotly would put milliseconds.
    """
    days = [record.day.isoformat() for record in records]
    return {"type": "date", "tickvals": days[:: max(1, len(days) // TICKS)], "tickformat": "%b %-d"}


def _lines(records: Sequence[TrackRecord]) -> list[Trace]:
    if not records:
        return []
    days = [record.day.isoformat() for record in records]
    return [
        go.Scatter(
            mode="lines", name="promised coverage", x=days, y=[PROMISED] * len(days),
            line={"color": MUTED, "dash": "dash", "width": 1}, hoverinfo="skip",
        ),
        go.Scatter(
            mode="lines+markers", name="coverage", line={"color": FIRST},
            x=days, y=[record.coverage for record in records],
        ),
        go.Scatter(
            mode="lines+markers", name="median error", line={"color": SECOND},
            marker={"symbol": "diamond"}, x=days, y=[record.median_error for record in records],
        ),
    ]  # fmt: skip


def _alarms(records: Sequence[TrackRecord]) -> list[Trace]:
    drifted = [record for record in records if record.alarm]
    if not drifted:
        return []
    return [
        go.Scatter(
            mode="markers", name="alarm",
            x=[record.day.isoformat() for record in drifted],
            y=[record.median_error for record in drifted],
            marker={"color": BAD, "symbol": "x", "size": 11},
        )
    ]  # fmt: skip
