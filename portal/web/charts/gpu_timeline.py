"""GPU allocations over time: past, present and expected.

There is one line for each GPU, grouped by node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import plotly.graph_objects as go

from portal.web.charts.chart import FIRST, GAP, MUTED, SECOND, Chart, Trace, by_clock, time_axis
from portal.web.templatetags.portal_format import duration, percent
from scheduler.selectors.cluster.gpu_lanes import Bar, ClosedTime, ExpectedBar, Lane

FOREIGN = "another user's job"
LINE_PX, SPACE_PX = 14, 100  # for a GPU; for legend and dates
FEWEST = 7  # lines: fewer GPUs leave some free, as every chart has room for as many
TABLE_ROWS = 100
AHEAD = timedelta(hours=24)  # nothing later is shown
NEAR_THE_END = 0.8  # of the time axis: a text to the right of it would be cut
BAR = 0.8  # of a line
PALE = 0.45  # the opacity of what is expected
Times = tuple[datetime | None, datetime | None]


class DrawnBar(NamedTuple):
    """A bar on a line, or on several around it.

    interval: within which it is expected to end; None: beyond what is known. waits: it has not started.
    """

    y: float
    start: datetime
    end: datetime
    text: str
    job: bool = False  # is it one whose name the reader may know?
    interval: Times = (None, None)
    lines: int = 1
    waits: bool = False


def lanes_chart(lanes: Sequence[Lane], *, since: datetime, now: datetime) -> Chart:
    """Draw bars from start to end on the lines of their GPUs.

    They are cut at the window's start. The time ahead is as long as anything is expected, at most AHEAD.
    """
    tops = _tops(lanes)
    placed = list(zip(tops, lanes, strict=True))
    held = [_held_bar(top, bar, since, now) for top, lane in placed for bar in lane.bars]
    unheard = [
        _unheard_bar(top, bar, since, now) for top, lane in placed for bar in lane.bars if bar.heard_at
    ]
    ahead = list(_expected_bars(placed, now))
    closed = [_closed_bar(top, lane, time, now) for top, lane in placed for time in lane.closed]
    until = min(max((bar.end for bar in (*ahead, *closed)), default=now), now + AHEAD)
    lines = tops[-1] + lanes[-1].gpus if lanes else 0
    return Chart.drawn(
        name="lanes",
        title="GPU allocations",
        summary=" ".join(_summary(lanes, since, now, until)),
        data=[
            *_traces("", held, {}),
            *_traces(", not heard of", unheard, {"opacity": PALE}, {"pattern": {"shape": "/", "size": 5}}),
            *_traces(", expected", ahead, {"opacity": PALE}),
            *_starts(ahead),
            *_intervals(ahead),
            *([_trace("closed", closed, SECOND, {"opacity": PALE})] if closed else []),
        ],
        layout=_layout(lanes, tops, lines, {"since": since, "now": now, "until": until}),
        columns=("node", "GPU", "job", "from", "to"),
        rows=[*_rows_ahead(lanes), *(_row(lane, bar) for lane in lanes for bar in lane.bars)][:TABLE_ROWS],
    )


def _tops(lanes: Sequence[Lane]) -> list[int]:
    """The line on which each node begins."""
    tops, line = [], 0
    for lane in lanes:
        tops.append(line)
        line += lane.gpus
    return tops


def _held_bar(top: int, bar: Bar, since: datetime, now: datetime) -> DrawnBar:
    """What a GPU did, as far as that is known.

    On a silent node, that is up to its last report.
    """
    end = max(bar.start, bar.heard_at or bar.end or now)
    text = f"{_name(bar)}, GPU {bar.gpu_index}, {duration((end - bar.start).total_seconds())}"
    start = max(bar.start, since)
    return DrawnBar(top + bar.gpu_index, start, max(start, end), text, bar.job is not None)


def _unheard_bar(top: int, bar: Bar, since: datetime, now: datetime) -> DrawnBar:
    heard_at = max(bar.start, bar.heard_at or bar.start)
    text = f"{_name(bar)}, GPU {bar.gpu_index}: its node has not reported since {_second(heard_at)}"
    return DrawnBar(top + bar.gpu_index, max(heard_at, since), now, text, bar.job is not None)


def _expected_bars(placed: Sequence[tuple[int, Lane]], now: datetime) -> Iterator[DrawnBar]:
    """The time left to running jobs, and the waiting jobs whose end is known."""
    for top, lane in placed:
        for bar in lane.bars:
            if bar.ending is not None:
                text = f"{_name(bar)}, GPU {bar.gpu_index}, until {_end(bar)}"
                times: Times = (bar.ending.earliest, bar.ending.latest)
                y, own = top + bar.gpu_index, bar.job is not None
                yield _stopped(lane, DrawnBar(y, now, bar.ending.at, text, own, times))
        for one in lane.expected:
            start, end = one.expected.start_at, one.expected.end_at
            text = f"{_name(one)}, GPU {one.gpu_index}, from {_start(one)} until {_end_ahead(one)}"
            times = one.expected.end_low, one.expected.end_high
            at = max(start, end) if end else start + AHEAD
            y, own = top + one.gpu_index, one.job is not None
            yield _stopped(lane, DrawnBar(y, start, at, text, own, times, waits=True))


def _stopped(lane: Lane, bar: DrawnBar) -> DrawnBar:
    """The bar up to the first window that closes the node to everybody.

    There the job is stopped.
    """
    closing = [time.begins_at for time in lane.closed if not time.reserved and time.begins_at > bar.start]
    if not closing or (at := min(closing)) >= bar.end:
        return bar
    text = f"{bar.text}; saved and stopped at {_second(at)} for a window, then elsewhere"
    return bar._replace(end=at, text=text, interval=(None, None))


def _closed_bar(top: int, lane: Lane, time: ClosedTime, now: datetime) -> DrawnBar:
    middle = top + (lane.gpus - 1) / 2
    return DrawnBar(middle, max(time.begins_at, now), time.ends_at, _why(time), lines=lane.gpus)


def _traces(
    name: str, bars: Sequence[DrawnBar], more: dict[str, Any], marker: dict[str, Any] | None = None
) -> Iterator[Trace]:
    own = [bar for bar in bars if bar.job]
    foreign = [bar for bar in bars if not bar.job]
    for whose, found, colour in (("jobs you may see", own, FIRST), ("other jobs", foreign, MUTED)):
        if found:
            yield _trace(whose + name, found, colour, more, marker)


def _trace(
    name: str,
    bars: Sequence[DrawnBar],
    colour: str,
    more: dict[str, Any],
    marker: dict[str, Any] | None = None,
) -> Trace:
    trace: Trace = go.Bar(
        orientation="h", name=name, y=[bar.y for bar in bars],
        base=[by_clock(bar.start) for bar in bars],
        x=[_ms(bar.start, bar.end) for bar in bars],
        hovertext=[bar.text for bar in bars],
        hoverinfo="text", **more,
        marker={"color": colour, "line": {"color": GAP, "width": 1}, **(marker or {})},
    )  # fmt: skip
    if any(bar.lines > 1 for bar in bars):
        trace["width"] = [bar.lines for bar in bars]
    return trace


def _starts(bars: Sequence[DrawnBar]) -> Iterator[Trace]:
    """A mark for each start that is expected.

    Bars of several jobs touch, or lie over each other.
    """
    found = [bar for bar in bars if bar.waits]
    if found:
        half = BAR / 2
        yield go.Scatter(
            mode="lines", name="expected start", hoverinfo="skip",
            x=[at for bar in found for at in (by_clock(bar.start), by_clock(bar.start), None)],
            y=[y for bar in found for y in (bar.y - half, bar.y + half, None)],
            line={"color": SECOND, "width": 2.5},
        )  # fmt: skip


def _intervals(bars: Sequence[DrawnBar]) -> Iterator[Trace]:
    """A thin line for each end that has one.

    Where one side is unknown, it reaches to the end itself.
    """
    found = [bar for bar in bars if bar.interval != (None, None)]
    if found:
        yield go.Scatter(
            mode="lines", name="80 % interval of the end", hoverinfo="skip",
            x=[at and by_clock(at) for bar in found for at in _ends(bar)],
            y=[y for bar in found for y in (bar.y, bar.y, None)],
            line={"color": MUTED, "width": 1.5},
        )  # fmt: skip


def _ends(bar: DrawnBar) -> tuple[datetime, datetime, None]:
    low, high = bar.interval
    return low or bar.end, high or bar.end, None


def _ms(start: datetime, end: datetime) -> int:
    return max(0, round((end - start).total_seconds() * 1000))


def _layout(lanes: Sequence[Lane], tops: Sequence[int], lines: int, shown: dict[str, datetime]) -> go.Layout:
    room = max(lines, FEWEST)
    spare = (room - lines) / 2
    middles = [top + (lane.gpus - 1) / 2 for top, lane in zip(tops, lanes, strict=True)]
    now = by_clock(shown["now"])
    past = (shown["now"] - shown["since"]) / (shown["until"] - shown["since"])
    return go.Layout(
        barmode="overlay", bargap=1 - BAR, height=SPACE_PX + LINE_PX * room,
        showlegend=True,
        xaxis=time_axis(range=[by_clock(shown["since"]), by_clock(shown["until"])]),
        yaxis={
            "tickvals": middles, "ticktext": [lane.name for lane in lanes],
            "range": [lines - 0.5 + spare, -0.5 - spare], "showgrid": False, "zeroline": False,
        },
        annotations=[
            {"text": "now", "x": now, "xanchor": "right" if past > NEAR_THE_END else "left",
             "y": 0, "yref": "paper", "yanchor": "bottom", "showarrow": False, "bgcolor": GAP},
        ],
        shapes=[
            {"type": "line", "yref": "paper", "x0": now, "x1": now, "y0": 0, "y1": 1,
             "line": {"color": MUTED, "width": 1.5, "dash": "dot"}},
            *(
                {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": top - 0.5, "y1": top - 0.5,
                 "line": {"color": MUTED, "width": 0.5}}
                for top in tops[1:]
            ),
        ],
    )  # fmt: skip


def _name(bar: Bar | ExpectedBar) -> str:
    return str(bar.job) if bar.job else FOREIGN


def _why(time: ClosedTime) -> str:
    why = "reserved for a team" if time.reserved else "closed for maintenance"
    return f"{why}: {time.note}" if time.note else why


def _end(bar: Bar) -> str:
    if bar.ending is None:
        return ""
    return _with_interval(bar.ending.at, (bar.ending.earliest, bar.ending.latest))


def _start(bar: ExpectedBar) -> str:
    return _with_interval(bar.expected.start_at, (bar.expected.start_low, bar.expected.start_high))


def _end_ahead(bar: ExpectedBar) -> str:
    end = bar.expected.end_at
    return _with_interval(end, (bar.expected.end_low, bar.expected.end_high)) if end else "an unknown end"


def _with_interval(at: datetime, times: Times) -> str:
    low, high = (_second(time) if time else "unknown" for time in times)
    return f"{_second(at)} ({low} to {high})"


def _row(lane: Lane, bar: Bar) -> tuple[str, ...]:
    until = f", expected until {_end(bar)}" if bar.ending else ""
    end = _second(bar.end) if bar.end else f"still allocated{until}"
    if bar.heard_at:
        end += f", not heard of since {_second(bar.heard_at)}"
    return lane.name, str(bar.gpu_index), _name(bar), _second(bar.start), end


def _rows_ahead(lanes: Sequence[Lane]) -> Iterator[tuple[str, ...]]:
    for lane in lanes:
        for time in lane.closed:
            yield lane.name, "all", _why(time), _second(time.begins_at), _second(time.ends_at)
        for bar in lane.expected:
            start, end = f"expected {_start(bar)}", f"expected {_end_ahead(bar)}"
            yield lane.name, str(bar.gpu_index), _name(bar), start, end


def _second(moment: datetime) -> str:
    return by_clock(moment).replace("T", " ")


def _summary(lanes: Sequence[Lane], since: datetime, now: datetime, until: datetime) -> Iterator[str]:
    gpus = sum(lane.gpus for lane in lanes)
    if not gpus:
        yield "No node with GPUs has joined yet."
        return
    bars = [bar for lane in lanes for bar in lane.bars]
    busy = sum(((bar.end or now) - max(bar.start, since)).total_seconds() for bar in bars)
    there = sum(lane.gpus * (now - max(since, lane.joined_at)).total_seconds() for lane in lanes)
    share = min(1.0, busy / there) if there > 0 else 0.0
    window = max((now - max(since, lane.joined_at)).total_seconds() for lane in lanes)
    held = sum(bar.end is None for bar in bars)
    yield (
        f"Of the GPUs shown, {held} of {gpus} are allocated now;"
        f" over the last {duration(window)}, {percent(share)} of their time was allocated."
    )
    unheard = sum(bar.heard_at is not None for bar in bars)
    if unheard:
        those = "1 of them" if unheard == 1 else f"{unheard} of them"
        yield f"Nothing is heard of {those}: the time since the last report is hatched."
    yield from _ahead_in_words(lanes, duration((until - now).total_seconds()))


def _ahead_in_words(lanes: Sequence[Lane], within: str) -> Iterator[str]:
    endings = [bar.ending.at for lane in lanes for bar in lane.bars if bar.ending]
    if endings:
        yield f"The first of them is expected to be free at {_second(min(endings))}."
    expected = [(lane.name, bar) for lane in lanes for bar in lane.expected]
    if expected:
        gpus = {(name, bar.gpu_index) for name, bar in expected}
        first = min(bar.expected.start_at for _, bar in expected)
        s = "" if len(gpus) == 1 else "s"
        yield (
            f"Waiting jobs are expected to start on {len(gpus)} GPU{s} within {within},"
            f" first at {_second(first)}."
        )
    closed = sum(bool(lane.closed) for lane in lanes)
    if closed:
        s, are = "" if len(lanes) == 1 else "s", "is" if closed == 1 else "are"
        yield f"Of the {len(lanes)} node{s} shown, {closed} {are} closed for a time within {within}."
    stale = [bar.expected.made_at for _, bar in expected if bar.expected.stale]
    if stale:
        yield f"The forecasts of waiting jobs are out of date: the oldest is of {_second(min(stale))}."
