"""A simulation's figures: mean JCT of each policy, split at the first start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from portal.web.charts.chart import FIRST, SECOND, Chart, Trace, axis
from portal.web.templatetags.portal_format import duration


def jct_chart(results: Sequence[Mapping[str, Any]]) -> Chart:
    """Mean JCT by policy, the shortest on top; every number is simulated."""
    order = sorted(results, key=lambda one: -one["jct_mean_s"])
    names = [one["policy"] for one in order]
    waits = [one["wait_mean_s"] for one in order]
    runs = [one["jct_mean_s"] - one["wait_mean_s"] for one in order]
    return Chart(
        name="jct",
        title="Mean job completion time, simulated",
        summary=_summary(order),
        data=[
            _bars("until first start", names, waits, SECOND),
            _bars("from first start to end", names, runs, FIRST),
        ] if order else [],
        layout={
            "barmode": "stack", "xaxis": axis("seconds, simulated", rangemode="tozero"), "yaxis": {},
            "showlegend": True, "height": 110 + 34 * max(3, len(order)),
        },
        columns=("policy", "mean JCT", "of it waiting"),
        rows=[
            (one["policy"], duration(one["jct_mean_s"]), duration(one["wait_mean_s"]))
            for one in reversed(order)
        ],
    )  # fmt: skip


def _bars(name: str, policies: list[str], seconds: list[float], colour: str) -> Trace:
    return {
        "type": "bar", "orientation": "h", "name": name, "y": policies,
        "x": [round(value, 1) for value in seconds], "marker": {"color": colour},
    }  # fmt: skip


def _summary(order: Sequence[Mapping[str, Any]]) -> str:
    if not order:
        return "No policy has been played yet."
    best, worst = order[-1], order[0]
    told = f"Simulated: {best['policy']} has the lowest mean JCT, {duration(best['jct_mean_s'])}"
    if len(order) == 1:
        return f"{told}."
    if (same := duration(worst["jct_mean_s"])) == duration(best["jct_mean_s"]):
        return f"Simulated: no policy stands out; the mean JCT of all is {same}."
    less = 1 - best["jct_mean_s"] / worst["jct_mean_s"] if worst["jct_mean_s"] else 0.0
    return f"{told}, {less:.0%} below {worst['policy']} with {duration(worst['jct_mean_s'])}."
