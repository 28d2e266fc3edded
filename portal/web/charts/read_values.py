"""Values read from sentences and scripts, and what people did with them."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from knowledge.core.domain.wording import counted
from portal.web.charts.chart import BAD, GOOD, MUTED, Chart, axis
from portal.web.templatetags.portal_format import percent, words
from scheduler.models import ReadValueCount

COLOURS = {"kept": GOOD, "changed": BAD, "cleared": MUTED}
MOST_BARS = 15


def read_values_chart(counts: Sequence[ReadValueCount]) -> Chart:
    """Chart how many values were kept, changed or cleared, by field; of all time."""
    order = sorted(counts, key=lambda row: (_total(row), row.source, row.field))
    bars = order[-MOST_BARS:]
    totals = {fate: sum(getattr(row, fate) for row in counts) for fate in COLOURS}
    whole = sum(totals.values())
    summary = "No job has been submitted from a sentence or a script yet."
    if whole:
        listed = ", ".join(f"{number:,} were {fate}" for fate, number in totals.items())
        summary = f"{counted(whole, 'value')} read since the beginning: {listed}"
        summary += f" before submission; {percent(totals['kept'] / whole)} were right as read."
    return Chart.drawn(
        name="read-values", title="Values read from sentences and scripts", summary=summary,
        data=[
            go.Bar(orientation="h", name=fate, y=[_named(row) for row in bars],
             x=[getattr(row, fate) for row in bars], marker={"color": colour})
            for fate, colour in COLOURS.items()
        ] if whole else [],
        layout=go.Layout(xaxis=axis("values", rangemode="tozero"), yaxis={}, barmode="stack",
                showlegend=True, height=90 + 34 * max(3, len(bars))),
        columns=("field", *COLOURS),
        rows=[(_named(row), *(f"{getattr(row, fate):,}" for fate in COLOURS)) for row in reversed(order)],
    )  # fmt: skip


def _total(row: ReadValueCount) -> int:
    return row.kept + row.changed + row.cleared


def _named(row: ReadValueCount) -> str:
    return f"{words(row.field)} ({row.source})"
