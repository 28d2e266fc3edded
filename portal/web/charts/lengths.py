"""How long the rows of a file are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from portal.web.charts.chart import axis, figure_json
from portal.web.templatetags.portal_format import size


def lengths_histogram(lengths: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return rows by length as `{"data", "layout", "summary"}`.

    The input is (bytes, rows) pairs in rising order.
    """
    trace = go.Bar(
        name="rows",
        x=[f"≤ {size(bound)}" for bound, _ in lengths],
        y=[rows for _, rows in lengths],
    )
    layout = go.Layout(
        xaxis=axis("length of a row", type="category"), yaxis=axis("rows"), height=200, bargap=0.1
    )
    return {**figure_json([trace], layout), "summary": _summary(lengths)}


def _summary(lengths: Sequence[Sequence[int]]) -> str:
    total, seen = sum(rows for _, rows in lengths), 0
    for bound, rows in lengths:
        seen += rows
        if 2 * seen >= total:
            longest = size(lengths[-1][0])
            return f"Half of the rows have at most {size(bound)}; the longest has at most {longest}."
    return "No rows."
