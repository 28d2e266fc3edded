"""GPU allocations over time: one line for each GPU, grouped by node."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from portal.web.charts.chart import FIRST, GAP, MUTED, Chart, Trace, by_clock, time_axis
from portal.web.templatetags.portal_format import duration, percent
from scheduler.selectors.cluster.queue import Bar, Lane

FOREIGN = "another user's job"
LINE_PX, SPACE_PX = 14, 100  # for a GPU; for legend and dates
FEWEST = 7  # lines: fewer GPUs leave some free, as every chart has room for as many
TABLE_ROWS = 100


def lanes_chart(lanes: Sequence[Lane], *, since: datetime, now: datetime) -> Chart:
    """Draw bars from start to end (or to now) on the lines of their GPUs.

    They are cut at the window's start.
    """
    tops = _tops(lanes)
    placed = [(top + bar.gpu_index, bar) for top, lane in zip(tops, lanes, strict=True) for bar in lane.bars]
    own = [(y, bar) for y, bar in placed if bar.job]
    foreign = [(y, bar) for y, bar in placed if not bar.job]
    lines = tops[-1] + lanes[-1].gpus if lanes else 0
    return Chart(
        name="lanes",
        title="GPU allocations",
        summary=_summary(lanes, since, now),
        data=[
            *([_trace("your jobs", own, FIRST, since, now)] if own else []),
            *([_trace("other users' jobs", foreign, MUTED, since, now)] if foreign else []),
        ],
        layout=_layout(lanes, tops, lines, since, now),
        columns=("node", "GPU", "job", "from", "to"),
        rows=[_row(lane, bar) for lane in lanes for bar in lane.bars][:TABLE_ROWS],
    )


def _tops(lanes: Sequence[Lane]) -> list[int]:
    """The line on which each node begins."""
    tops, line = [], 0
    for lane in lanes:
        tops.append(line)
        line += lane.gpus
    return tops


def _layout(
    lanes: Sequence[Lane], tops: Sequence[int], lines: int, since: datetime, now: datetime
) -> dict[str, Any]:
    room = max(lines, FEWEST)
    spare = (room - lines) / 2
    middles = [top + (lane.gpus - 1) / 2 for top, lane in zip(tops, lanes, strict=True)]
    return {
        "barmode": "overlay", "bargap": 0.2, "height": SPACE_PX + LINE_PX * room,
        "showlegend": True,
        "xaxis": time_axis(range=[by_clock(since), by_clock(now)]),
        "yaxis": {
            "tickvals": middles, "ticktext": [lane.name for lane in lanes],
            "range": [lines - 0.5 + spare, -0.5 - spare], "showgrid": False, "zeroline": False,
        },
        "shapes": [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": top - 0.5, "y1": top - 0.5,
             "line": {"color": MUTED, "width": 0.5}}
            for top in tops[1:]
        ],
    }  # fmt: skip


def _trace(name: str, bars: Sequence[tuple[int, Bar]], colour: str, since: datetime, now: datetime) -> Trace:
    starts = [max(bar.start, since) for _, bar in bars]
    ends = [bar.end or now for _, bar in bars]
    return {
        "type": "bar", "orientation": "h", "name": name, "y": [y for y, _ in bars],
        "base": [by_clock(start) for start in starts],
        "x": [round((end - start).total_seconds() * 1000) for start, end in zip(starts, ends, strict=True)],
        "hovertext": [_hover(bar, now) for _, bar in bars],
        "hoverinfo": "text", "marker": {"color": colour, "line": {"color": GAP, "width": 1}},
    }  # fmt: skip


def _hover(bar: Bar, now: datetime) -> str:
    held = duration(((bar.end or now) - bar.start).total_seconds())
    return f"{_name(bar)}, GPU {bar.gpu_index}, {held}"


def _name(bar: Bar) -> str:
    return str(bar.job) if bar.job else FOREIGN


def _row(lane: Lane, bar: Bar) -> tuple[str, ...]:
    end = _second(bar.end) if bar.end else "still allocated"
    return lane.name, str(bar.gpu_index), _name(bar), _second(bar.start), end


def _second(moment: datetime) -> str:
    return by_clock(moment).replace("T", " ")


def _summary(lanes: Sequence[Lane], since: datetime, now: datetime) -> str:
    gpus = sum(lane.gpus for lane in lanes)
    if not gpus:
        return "No node with GPUs has joined yet."
    bars = [bar for lane in lanes for bar in lane.bars]
    busy = sum(((bar.end or now) - max(bar.start, since)).total_seconds() for bar in bars)
    window = (now - since).total_seconds()
    share = min(1.0, busy / (gpus * window))
    held = sum(bar.end is None for bar in bars)
    return (
        f"Of the GPUs shown, {held} of {gpus} are allocated now;"
        f" over the last {duration(window)}, {percent(share)} of their time was allocated."
    )
