"""Do promises still hold? What the nightly judgement of recent runs found, day by day."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.models import TrackRecord
from portal.web.charts.chart import BAD, FIRST, MUTED, SECOND, Chart, Trace, axis
from portal.web.templatetags.portal_format import percent

PROMISED = 0.8  # how often an interval should hold


def nightly(records: Sequence[TrackRecord]) -> Chart:
    """Coverage and median error of tokens per second, one point a day, oldest first; alarms stand out."""
    return Chart(
        name="nightly",
        title="Judged once a day",
        summary=_summary(records),
        data=[*_lines(records), *_alarms(records)],
        layout={
            "xaxis": {"type": "date"}, "yaxis": axis("share", tickformat=".0%", rangemode="tozero"),
            "showlegend": True,
        },
        columns=("day", "runs", "inside the interval", "median error", "alarm"),
        rows=[_row(record) for record in reversed(records)],
    )  # fmt: skip


def _summary(records: Sequence[TrackRecord]) -> str:
    if not records:
        return "No run with a promise has been judged yet; that is done once a day."
    last, alarms = records[-1], sum(1 for record in records if record.alarm)
    return (
        f"On {last.day}, {percent(last.coverage)} of the last {last.runs} runs ended inside their 80 %"
        f" interval, with a median error of {percent(last.median_error)} in tokens per second."
        f" {alarms} of {len(records)} days raised an alarm."
    )


def _row(record: TrackRecord) -> tuple[str, ...]:
    shares = percent(record.coverage), percent(record.median_error)
    return f"{record.day}", f"{record.runs}", *shares, record.alarm


def _lines(records: Sequence[TrackRecord]) -> list[Trace]:
    if not records:
        return []
    days = [record.day.isoformat() for record in records]
    common = {"type": "scatter", "x": days}
    return [
        {
            **common, "mode": "lines", "name": "promised coverage", "y": [PROMISED] * len(days),
            "line": {"color": MUTED, "dash": "dash", "width": 1}, "hoverinfo": "skip",
        },
        {
            **common, "mode": "lines+markers", "name": "coverage", "line": {"color": FIRST},
            "y": [record.coverage for record in records],
        },
        {
            **common, "mode": "lines+markers", "name": "median error", "line": {"color": SECOND},
            "marker": {"symbol": "diamond"}, "y": [record.median_error for record in records],
        },
    ]  # fmt: skip


def _alarms(records: Sequence[TrackRecord]) -> list[Trace]:
    drifted = [record for record in records if record.alarm]
    if not drifted:
        return []
    return [
        {
            "type": "scatter", "mode": "markers", "name": "alarm",
            "x": [record.day.isoformat() for record in drifted],
            "y": [record.median_error for record in drifted],
            "marker": {"color": BAD, "symbol": "x", "size": 11},
        }
    ]  # fmt: skip
