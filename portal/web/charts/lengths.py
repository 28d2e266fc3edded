"""How long the rows of a file are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.web.templatetags.portal_format import size


def lengths_histogram(lengths: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return rows by length as `{"data", "layout", "summary"}`.

    The input is (bytes, rows) pairs in rising order.
    """
    trace = {
        "type": "bar",
        "name": "rows",
        "x": [f"≤ {size(bound)}" for bound, _ in lengths],
        "y": [rows for _, rows in lengths],
    }
    layout = {
        "xaxis": {"title": {"text": "length of a row"}, "type": "category"},
        "yaxis": {"title": {"text": "rows"}},
        "height": 200,
        "bargap": 0.1,
    }
    return {"data": [trace], "layout": layout, "summary": _summary(lengths)}


def _summary(lengths: Sequence[Sequence[int]]) -> str:
    total, seen = sum(rows for _, rows in lengths), 0
    for bound, rows in lengths:
        seen += rows
        if 2 * seen >= total:
            longest = size(lengths[-1][0])
            return f"Half of the rows have at most {size(bound)}; the longest has at most {longest}."
    return "No rows."
