"""A period in charts: utilisation, ends, failures and throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from portal.web.charts.chart import BAD, FIRST, GOOD, MUTED, SECOND, Chart, Trace, axis, count_axis
from portal.web.templatetags.portal_format import failure, number, percent
from scheduler.selectors.analysis.analytics import Utilisation
from scheduler.selectors.analysis.histogram import Histogram

STATE_COLOURS = {"succeeded": GOOD, "failed": BAD, "cancelled": MUTED}
CAUSES = {
    "error": "error of data or code",
    "oom": "out of memory",
    "lost": "node lost",
    "declined": "declined by the node",
    "timeout": "no sign of life in time",
    "killed": "process killed",
}


def when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def utilisation_chart(found: Utilisation, slices: Sequence[datetime]) -> Chart:
    """Shares of the GPU time that was offered: held by all, and by the reader's own jobs."""
    held, own = _shares(found.held, found.offered), found.own and _shares(found.own, found.offered)
    lines = [_share_line("all jobs", slices, held, FIRST)]
    if own:
        lines.append(_share_line("your jobs", slices, own, SECOND))
    offered = sum(found.offered)
    known = [(share, moment) for share, moment in zip(held, slices, strict=True) if share is not None]
    mean, peak = sum(found.held) / offered if offered else None, max(known, default=None)
    summary = "No node offered GPUs in this period."
    if peak:
        summary = f"On average {percent(mean)} of the GPU time was used; at most {percent(peak[0])}"
        summary += f", from {when(peak[1])}."
    return Chart(
        name="utilisation", title="Utilisation", summary=summary, data=lines if known else [],
        layout={
            "xaxis": {"type": "date"}, "yaxis": axis("GPU time in use", tickformat=".0%", range=[0, 1.02]),
            "showlegend": own is not None,
        },
        columns=("from", "all jobs", *(["your jobs"] if own else [])),
        rows=[
            (when(moment), percent(held[k]), *([percent(own[k])] if own else []))
            for k, moment in enumerate(slices)
        ],
    )  # fmt: skip


def _shares(held: Sequence[float], offered: Sequence[float]) -> list[float | None]:
    return [min(1.0, max(0.0, h / o)) if o > 0 else None for h, o in zip(held, offered, strict=True)]


def _share_line(name: str, slices: Sequence[datetime], shares: Sequence[float | None], colour: str) -> Trace:
    # A line needs two ends: the only slice known of a young portal is a mark.
    few = sum(share is not None for share in shares) < 3
    return {
        "type": "scatter", "mode": "lines+markers" if few else "lines", "name": name,
        "x": [moment.isoformat() for moment in slices],
        "y": [None if share is None else round(share, 4) for share in shares],
        "line": {"color": colour, "shape": "hv"},
    }  # fmt: skip


def outcomes_chart(ended: Mapping[str, Sequence[int]], slices: Sequence[datetime]) -> Chart:
    """How many jobs ended in which way, over time."""
    totals = {state: sum(counts) for state, counts in ended.items()}
    whole, top = sum(totals.values()), max(map(sum, zip(*ended.values(), strict=True)), default=0)
    told = ", ".join(f"{count:,} {state}" for state, count in totals.items())
    return Chart(
        name="outcomes",
        title="Jobs by outcome",
        summary=f"{whole:,} jobs ended: {told}." if whole else "No job ended in this period.",
        data=[
            {"type": "bar", "name": state, "x": [moment.isoformat() for moment in slices], "y": list(counts),
             "marker": {"color": STATE_COLOURS[state]}}
            for state, counts in ended.items()
        ] if whole else [],
        layout={
            "xaxis": {"type": "date"}, "yaxis": count_axis("jobs", top), "barmode": "stack",
            "showlegend": True,
        },
        columns=("from", *ended),
        rows=[
            (when(moment), *(str(counts[k]) for counts in ended.values()))
            for k, moment in enumerate(slices)
            if any(counts[k] for counts in ended.values())
        ],
    )  # fmt: skip


def failures_chart(attempts: Mapping[str, int], jobs: Mapping[str, int]) -> Chart:
    """Attempts that ended badly, by what happened to them; in words also the jobs that failed for good."""
    named = sorted(((CAUSES.get(cause, cause), n) for cause, n in attempts.items()), key=lambda pair: pair[1])
    told = ", ".join(f"{n:,} of {failure(kind)}" for kind, n in sorted(jobs.items()))
    summary = f"{sum(attempts.values()):,} attempts ended badly. " if attempts else "No attempt ended badly. "
    summary += f"Failed for good: {told}." if jobs else "No job failed for good."
    rows = [("attempts", cause, f"{n:,}") for cause, n in reversed(named)]
    rows += [("jobs failed for good", failure(kind), f"{n:,}") for kind, n in sorted(jobs.items())]
    return Chart(
        name="failures", title="Failures by cause", summary=summary,
        data=[_bars([cause for cause, _ in named], [n for _, n in named], BAD)] if named else [],
        layout={"xaxis": axis("attempts", rangemode="tozero"), "yaxis": {}, "height": _height(named)},
        columns=("what", "cause", "number"), rows=[*rows],
    )  # fmt: skip


def throughput_chart(found: Mapping[str, Histogram]) -> Chart:
    """Tokens per second and GPU of each GPU model: the median, with the middle 80 % as bars."""
    spread = {model: [h.quantile(share) or 0.0 for share in (0.1, 0.5, 0.9)] for model, h in found.items()}
    order = sorted(spread, key=lambda model: spread[model][1])
    bars = _bars(order, [round(spread[model][1], 1) for model in order], FIRST)
    bars["error_x"] = {
        "type": "data", "symmetric": False, "thickness": 1, "color": MUTED,
        "array": [round(spread[m][2] - spread[m][1], 1) for m in order],
        "arrayminus": [round(spread[m][1] - spread[m][0], 1) for m in order],
    }  # fmt: skip
    nothing = "No run was measured in this period."
    told = "; ".join(f"{m} {number(spread[m][1])} ({found[m].total:,} runs)" for m in reversed(order))
    return Chart(
        name="throughput",
        title="Throughput by GPU model",
        summary=f"Median tokens per second and GPU: {told}." if order else nothing,
        data=[bars] if order else [],
        layout={
            "xaxis": axis("tokens per second and GPU", rangemode="tozero"),
            "yaxis": {},
            "height": _height(order),
        },
        columns=("GPU model", "runs", "p10", "p50", "p90"),
        rows=[(m, f"{found[m].total:,}", *(number(value) for value in spread[m])) for m in reversed(order)],
    )  # fmt: skip


def _bars(names: list[str], values: Sequence[float], colour: str) -> Trace:
    return {"type": "bar", "orientation": "h", "y": names, "x": values, "marker": {"color": colour}}


def _height(bars: Sequence[Any]) -> int:
    return 90 + 34 * max(3, len(bars))
