"""The chart of a team's GPU-hours."""

from __future__ import annotations

from datetime import UTC, datetime

from portal.web.charts.team_usage import receipt_chart
from scheduler.core.quotas.receipt import Receipt
from scheduler.selectors.analysis.team_usage import TeamUsage

DAY = Receipt(guaranteed_s=7200.0, used_s=10_800.0, borrowed_s=3600.0)


def bars(*, quotas: bool, day: Receipt = DAY) -> dict[str, list[float]]:
    usage = TeamUsage(gpu_model="", total=day, quotas=quotas, days=[day])
    chart = receipt_chart(usage, [datetime(2026, 1, 1, tzinfo=UTC)])
    return {trace["name"]: trace["y"] for trace in chart.data}


def test_use_is_parted_by_the_guarantee() -> None:
    assert bars(quotas=True) == {"used of the guarantee": [2.0], "borrowed": [1.0], "guaranteed": [2.0]}


def test_where_nobody_has_a_quota_nothing_is_called_guaranteed() -> None:
    assert bars(quotas=False, day=Receipt(used_s=10_800.0)) == {"used": [3.0]}
