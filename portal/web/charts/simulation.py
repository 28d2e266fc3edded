"""A simulation's figures: mean JCT of each policy, split at the first start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from portal.web.charts.chart import FIRST, SECOND, Chart, Trace, linear_duration_axis
from portal.web.templatetags.portal_format import duration

WELL_REPRODUCED = 0.05  # the error of the mean JCT up to which it needs no caution


def jct_chart(
    results: Sequence[Mapping[str, Any]],
    *,
    in_force: str,
    reproduced: Mapping[str, Any] | None = None,
) -> Chart:
    """Draw the mean JCT by policy, the shortest on top.

    in_force: the policy that decides here now. reproduced: the real and simulated figures of that time.
    """
    order = sorted(results, key=lambda one: -one["jct_mean_s"])
    names = [one["policy"] for one in order]
    waits = [one["wait_mean_s"] for one in order]
    longest = max((one["jct_mean_s"] for one in order), default=0.0)
    runs = [one["jct_mean_s"] - one["wait_mean_s"] for one in order]
    return Chart.drawn(
        name="jct",
        title="Mean job completion time, simulated",
        summary=_summary(order, in_force, _caution(reproduced or {})),
        data=[
            _bars("until first start", names, waits, SECOND),
            _bars("from first start to end", names, runs, FIRST),
        ] if order else [],
        layout=go.Layout(
            barmode="stack", xaxis=linear_duration_axis("simulated time", longest), yaxis={},
            showlegend=True, height=110 + 34 * max(3, len(order)),
        ),
        columns=("policy", "mean JCT", "of it waiting"),
        rows=[
            (one["policy"], duration(one["jct_mean_s"]), duration(one["wait_mean_s"]))
            for one in reversed(order)
        ],
    )  # fmt: skip


def _bars(name: str, policies: list[str], seconds: list[float], colour: str) -> Trace:
    return go.Bar(
        orientation="h", name=name, y=policies,
        x=[round(value, 1) for value in seconds], marker={"color": colour},
        customdata=[duration(value) for value in seconds], hovertemplate="%{y}: %{customdata}",
    )  # fmt: skip


def _summary(order: Sequence[Mapping[str, Any]], in_force: str, caution: str) -> str:
    """Name the policy with the lowest mean JCT, beside the one in force.

    Means that read the same are a tie.
    """
    if not order:
        return "No policy has been simulated yet."
    means = {one["policy"]: one["jct_mean_s"] for one in reversed(order)}
    lowest = duration(min(means.values()))
    winners = [name for name, mean in means.items() if duration(mean) == lowest]
    if len(means) > 1 and len(winners) == len(means):
        return f"Simulated: all policies have the same mean JCT, {lowest}{caution}."
    winners.sort(key=lambda name: name != in_force)
    names = [f"{name} (in force)" if name == in_force else name for name in winners]
    verb = "has" if len(names) == 1 else "have"
    summary = f"Simulated: {' and '.join(names)} {verb} the lowest mean JCT, {lowest}"
    if in_force not in means:
        return f"{summary}; the policy in force, {in_force}, was not simulated{caution}."
    if in_force in winners:
        return f"{summary}{caution}."
    less = 1 - means[winners[0]] / means[in_force]
    below = f"{less:.0%} below the policy in force, {in_force}, with {duration(means[in_force])}"
    return f"{summary}, {below}{caution}."


def _caution(reproduced: Mapping[str, Any]) -> str:
    """The caution where a mean JCT was not reproduced well; else nothing."""
    if "real" not in reproduced:
        return ""
    error = relative_error(reproduced["real"]["jct_mean_s"], reproduced["simulated"]["jct_mean_s"])
    if abs(error) <= WELL_REPRODUCED:
        return ""
    return (
        f"; but the simulation of that time as it was differs from the real mean JCT by {error:+.0%},"
        " and smaller differences between policies say little"
    )


def relative_error(real: float, simulated: float) -> float:
    """The simulated figure's distance from the real one, as a share of that."""
    return simulated / (real or 1.0) - 1
