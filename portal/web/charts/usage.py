"""A period in charts: utilisation, ends, failures and throughput."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import plotly.graph_objects as go

from knowledge.core.domain.wording import counted
from knowledge.reading.failures.explaining import UNKNOWN
from portal.web.charts.chart import (
    BAD,
    FIRST,
    GOOD,
    HOLDS,
    MUTED,
    SECOND,
    Chart,
    Trace,
    axis,
    by_clock,
    count_axis,
    line_over_time,
    time_axis,
    when,
)
from portal.web.templatetags.portal_format import duration, failure, number, percent
from scheduler.selectors.analysis.analytics import FailedAttempts, Utilisation
from scheduler.selectors.analysis.histogram import Histogram

STATE_COLOURS = {"succeeded": GOOD, "failed": BAD, "cancelled": MUTED}
CAUSES = {
    "error": "error in data or code",
    "oom": "out of memory",
    "lost": "node lost",
    "declined": "declined by the node",
    "timeout": "no sign of life in time",
    "killed": "process killed",
    "checkpoint": "checkpoint lost",
    "data": "training data lost",
}


def utilisation_chart(found: Utilisation, slices: Sequence[datetime]) -> Chart:
    """Chart the shares of the offered GPU time that were held.

    Time before a node joined or after it left is not offered, so a slice may count in part.
    One line is for all jobs, one for the reader's own jobs.
    """
    held, own = _shares(found.held, found.offered), found.own and _shares(found.own, found.offered)
    lines = [_share_line("all jobs", slices, held, FIRST)]
    if own:
        lines.append(_share_line("your jobs", slices, own, SECOND))
    offered = sum(found.offered)
    known = [(share, moment) for share, moment in zip(held, slices, strict=True) if share is not None]
    mean, peak = sum(found.held) / offered if offered else None, max(known, default=None)
    summary = "No GPUs were available in this period."
    if peak:
        summary = f"On average {percent(mean)} of the GPU time that nodes offered was used;"
        summary += f" the peak was {percent(peak[0])} in the {_slice(slices)} from {when(peak[1])}."
    return Chart.drawn(
        name="utilisation", title="Utilisation", summary=summary, data=lines if known else [],
        layout=go.Layout(
            xaxis=time_axis(), yaxis=axis("GPU time in use", tickformat=".0%", range=[0, 1.02]),
            showlegend=own is not None,
        ),
        columns=("from", "all jobs", *(["your jobs"] if own else [])),
        rows=[
            (when(moment), percent(held[k]), *([percent(own[k])] if own else []))
            for k, moment in enumerate(slices)
        ],
    )  # fmt: skip


def _slice(slices: Sequence[datetime]) -> str:
    return duration((slices[1] - slices[0]).total_seconds()) if len(slices) > 1 else "time"


def _shares(held: Sequence[float], offered: Sequence[float]) -> list[float | None]:
    return [min(1.0, max(0.0, h / o)) if o > 0 else None for h, o in zip(held, offered, strict=True)]


def _share_line(name: str, slices: Sequence[datetime], shares: Sequence[float | None], colour: str) -> Trace:
    rounded = (None if share is None else round(share, 4) for share in shares)
    return line_over_time(name, list(zip(slices, rounded, strict=True)), colour, **HOLDS)


def outcomes_chart(ended: Mapping[str, Sequence[int]], slices: Sequence[datetime]) -> Chart:
    """How many jobs ended in which way, over time."""
    totals = {state: sum(counts) for state, counts in ended.items()}
    whole, top = sum(totals.values()), max(map(sum, zip(*ended.values(), strict=True)), default=0)
    listed = ", ".join(f"{count:,} {state}" for state, count in totals.items())
    return Chart.drawn(
        name="outcomes",
        title="Jobs by outcome",
        summary=f"{counted(whole, 'job')} ended: {listed}." if whole else "No jobs ended in this period.",
        data=[
            go.Bar(name=state, x=[by_clock(moment) for moment in slices], y=list(counts),
             marker={"color": STATE_COLOURS[state]})
            for state, counts in ended.items()
        ] if whole else [],
        layout=go.Layout(
            xaxis=time_axis(), yaxis=count_axis("jobs", top), barmode="stack",
            showlegend=True,
        ),
        columns=("from", *ended),
        rows=[
            (when(moment), *(str(counts[k]) for counts in ended.values()))
            for k, moment in enumerate(slices)
            if any(counts[k] for counts in ended.values())
        ],
    )  # fmt: skip


def failures_chart(attempts: Sequence[FailedAttempts], jobs: Mapping[str, int]) -> Chart:
    """Chart attempts that ended badly, by the cause that their logs tell.

    The words also count the jobs that failed for good.
    """
    by_cause: Counter[str] = Counter()
    for one in attempts:
        by_cause[_cause(one)] += one.attempts
    named = sorted(by_cause.items(), key=lambda pair: pair[1])
    listed = ", ".join(f"{n:,} because of {failure(kind)}" for kind, n in sorted(jobs.items()))
    whole = by_cause.total()
    summary = f"{counted(whole, 'attempt')} failed, most of them for: {named[-1][0]}. " if whole else ""
    summary = summary or "No attempts failed. "
    summary += f"Jobs that failed: {listed}." if jobs else "No jobs failed."
    rows = [("attempts", cause, f"{n:,}") for cause, n in reversed(named)]
    rows += [("failed jobs", failure(kind), f"{n:,}") for kind, n in sorted(jobs.items())]
    return Chart.drawn(
        name="failures", title="Failures by cause", summary=summary,
        data=[_bars([cause for cause, _ in named], [n for _, n in named], BAD)] if named else [],
        layout=go.Layout(xaxis=axis("attempts", rangemode="tozero"), yaxis={}, height=_height(named)),
        columns=("kind", "cause", "count"), rows=[*rows],
    )  # fmt: skip


def _cause(one: FailedAttempts) -> str:
    """The cause that the log tells, else what the node reported."""
    if not one.cause or one.cause == UNKNOWN:
        return CAUSES.get(one.outcome, one.outcome)
    return one.cause.replace("-", " ").replace("gpu", "GPU")


def throughput_chart(found: Mapping[str, Histogram]) -> Chart:
    """Chart tokens per second and GPU of each GPU model.

    The value is the median, with the middle 80 % as bars.
    """
    spread = {model: [h.quantile(share) or 0.0 for share in (0.1, 0.5, 0.9)] for model, h in found.items()}
    order = sorted(spread, key=lambda model: spread[model][1])
    bars = _bars(order, [_short(spread[model][1]) for model in order], FIRST)
    bars["error_x"] = {
        "type": "data", "symmetric": False, "thickness": 1, "color": MUTED,
        "array": [_short(spread[m][2] - spread[m][1]) for m in order],
        "arrayminus": [_short(spread[m][1] - spread[m][0]) for m in order],
    }  # fmt: skip
    nothing = "No runs were measured in this period."
    listed = "; ".join(
        f"{m} {number(spread[m][1])} ({counted(found[m].total, 'run')})" for m in reversed(order)
    )
    return Chart.drawn(
        name="throughput",
        title="Throughput by GPU model",
        summary=f"Median tokens per second and GPU: {listed}." if order else nothing,
        data=[bars] if order else [],
        layout=go.Layout(
            xaxis=axis("tokens per second and GPU", rangemode="tozero"),
            yaxis={},
            height=_height(order),
        ),
        columns=("GPU model", "runs", "p10", "p50", "p90"),
        rows=[(m, f"{found[m].total:,}", *(number(value) for value in spread[m])) for m in reversed(order)],
    )  # fmt: skip


def _short(value: float) -> float:
    """Six digits: never fewer than captions tell."""
    return float(f"{value:.6g}")


def _bars(names: list[str], values: Sequence[float], colour: str) -> Trace:
    return go.Bar(orientation="h", y=names, x=values, marker={"color": colour})


def _height(bars: Sequence[Any]) -> int:
    return 90 + 34 * max(3, len(bars))
