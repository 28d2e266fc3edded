"""Charts of the queue, the cluster and the promises.

They are pure functions that tell their story in words too.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from knowledge.core.domain.types import Interval
from knowledge.models import TrackRecord
from portal.accounts.models import User
from portal.web.charts import distributions, gpu_timeline, track_record, usage
from portal.web.charts.chart import Chart, duration_axis, log_axis
from portal.web.charts.drift import nightly
from portal.web.common.period import chosen, remembered
from scheduler.selectors.analysis.analytics import FailedAttempts, Utilisation
from scheduler.selectors.analysis.histogram import Histogram, of
from scheduler.selectors.analysis.track_record import Pair
from scheduler.selectors.cluster.gpu_lanes import Bar, ClosedTime, ExpectedBar, Lane
from scheduler.selectors.figures.start_forecasts import Expected
from scheduler.selectors.figures.times import Ending

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
JOINED = NOW - 24 * HOUR
SLICES = [NOW - 2 * HOUR, NOW - HOUR]


def drawable(chart: Chart) -> Chart:
    """Plain JSON without NaN, and as many cells as columns."""
    json.dumps(chart.figure, allow_nan=False)
    assert {len(row) for row in chart.rows} <= {len(chart.columns)}
    return chart


def test_a_distribution_is_told_by_its_quantiles() -> None:
    chart = drawable(distributions.distribution(of([(409, 98), (819, 2)]), distributions.WAIT))
    assert chart.summary == ("The time queued over 100 jobs: 1 min (p50), 1 min (p95), 1 h (p99).")
    assert [trace["name"] for trace in chart.data][1:] == ["p50: 1 min", "p95: 1 min", "p99: 1 h"]


def test_nothing_measured_is_said_and_not_drawn() -> None:
    empty = [
        distributions.distribution(Histogram(), distributions.JCT),
        usage.utilisation_chart(Utilisation(offered=[0, 0], held=[0, 0], own=None), SLICES),
        usage.outcomes_chart({"failed": [0, 0]}, SLICES),
        usage.failures_chart([], {}),
        usage.throughput_chart({}),
        track_record.scatter("duration_s", []),
        track_record.error_over_time({"duration_s": []}),
    ]
    assert [drawable(chart).data for chart in empty] == [[]] * len(empty)
    assert all(chart.summary for chart in empty)


def test_utilisation_shows_the_own_share_beside_the_clusters() -> None:
    found = Utilisation(offered=[7200, 7200], held=[3600, 7200], own=[0, 3600])
    chart = drawable(usage.utilisation_chart(found, SLICES))
    assert chart.summary.startswith("On average 75% of the GPU time that nodes offered was used;")
    assert "the peak was 100% in the " in chart.summary
    assert [trace["y"] for trace in chart.data] == [[0.5, 1.0], [0, 0.5]]


def test_failures_are_named_in_words() -> None:
    chart = drawable(
        usage.failures_chart(
            [
                FailedAttempts("oom", "gpu-memory", "resource", 2),
                FailedAttempts("oom", "", "", 1),
                FailedAttempts("lost", "", "", 1),
            ],
            {"resource": 1},
        )
    )
    assert chart.summary == (
        "4 attempts failed, most of them for: GPU memory. Jobs that failed: 1 because of resources."
    )
    assert chart.rows[0] == ("attempts", "GPU memory", "2")


def test_lanes_are_cut_at_the_window_and_hide_strangers_names() -> None:
    bars = (Bar(node="n", gpu_index=1, start=NOW - 9 * HOUR, end=None, job=None),)
    chart = drawable(
        gpu_timeline.lanes_chart(
            [Lane(name="box", gpus=2, joined_at=JOINED, bars=bars)], since=NOW - 6 * HOUR, now=NOW
        )
    )
    assert chart.data[0]["base"] == ["2026-03-01T06:00:00"]
    assert chart.data[0]["x"] == [6 * 3600 * 1000]
    assert chart.rows == [("box", "1", "another user's job", "2026-03-01 03:00:00", "still allocated")]
    assert chart.summary.startswith(
        "Of the GPUs shown, 1 of 2 are allocated now; over the last 6 h, 50% of their time was allocated."
    )


def test_time_before_a_node_joined_counts_as_nothing() -> None:
    bar = Bar(node="n", gpu_index=0, start=NOW - HOUR, end=None, job=None)
    lane = Lane(name="box", gpus=2, joined_at=NOW - 2 * HOUR, bars=(bar,))
    late = Lane(name="new", gpus=1, joined_at=NOW - HOUR, bars=())
    chart = drawable(gpu_timeline.lanes_chart([lane, late], since=NOW - 6 * HOUR, now=NOW))
    assert "over the last 2 h, 20% of their time was allocated." in chart.summary


def test_no_bar_goes_on_through_a_window_that_closes_its_node() -> None:
    later = Ending(now=NOW, left=Interval(10 * 3600.0))
    bars = (Bar(node="n", gpu_index=0, start=NOW - HOUR, end=None, job=None, ending=later),)
    for reserved, hours in ((False, 5), (True, 10)):
        window = ClosedTime(begins_at=NOW + 5 * HOUR, ends_at=NOW + 6 * HOUR, reserved=reserved, note="")
        lane = Lane(name="box", gpus=1, joined_at=JOINED, bars=bars, closed=(window,))
        chart = drawable(gpu_timeline.lanes_chart([lane], since=NOW - 6 * HOUR, now=NOW))
        assert chart.data[1]["x"] == [hours * 3_600_000]
        assert ("stopped at 2026-03-01 17:00:00" in chart.data[1]["hovertext"][0]) is not reserved


def test_lanes_go_on_to_what_is_expected_and_say_so() -> None:
    soon = Ending(now=NOW, left=Interval(3600.0, 1800.0, 5400.0))
    bars = (Bar(node="n", gpu_index=0, start=NOW - HOUR, end=None, job=None, ending=soon),)
    hours = {"start_at": 1, "start_low": 0.5, "start_high": 1.5, "end_at": 4, "end_low": 3}
    reported = {name: NOW + after * HOUR for name, after in hours.items()}
    ahead = Expected(made_at=NOW - HOUR, stale=True, end_high=None, **reported)
    closed = ClosedTime(begins_at=NOW + 5 * HOUR, ends_at=NOW + 90 * HOUR, reserved=False, note="new fans")
    lane = Lane(
        name="box", gpus=2, joined_at=JOINED, bars=bars, closed=(closed,),
        expected=tuple(ExpectedBar(gpu_index=index, expected=ahead, job=None) for index in (0, 1)),
    )  # fmt: skip
    chart = drawable(gpu_timeline.lanes_chart([lane], since=NOW - 6 * HOUR, now=NOW))
    held, expected, starts, intervals, windows = chart.data
    assert (held["x"], expected["x"]) == ([3_600_000], [3_600_000, 10_800_000, 10_800_000])
    assert expected["base"] == ["2026-03-01T12:00:00", "2026-03-01T13:00:00", "2026-03-01T13:00:00"]
    assert starts["x"] == ["2026-03-01T13:00:00", "2026-03-01T13:00:00", None] * 2, "of waiting jobs"
    assert starts["y"] == [-0.4, 0.4, None, 0.6, 1.4, None]
    assert intervals["x"][:3] == ["2026-03-01T12:30:00", "2026-03-01T13:30:00", None]
    assert intervals["x"][3:6] == ["2026-03-01T15:00:00", "2026-03-01T16:00:00", None]
    assert intervals["y"] == [0, 0, None, 0, 0, None, 1, 1, None]
    assert (windows["width"], windows["y"]) == ([2], [0.5])
    assert chart.layout["xaxis"]["range"][1] == "2026-03-02T12:00:00", "a day ahead at most"
    assert chart.summary.endswith(
        "The first of them is expected to be free at 2026-03-01 13:00:00."
        " Waiting jobs are expected to start on 2 GPUs within 1 d, first at 2026-03-01 13:00:00."
        " Of the 1 node shown, 1 is closed for a time within 1 d."
        " The forecasts of waiting jobs are out of date: the oldest is of 2026-03-01 11:00:00."
    )
    assert chart.rows[0][:3] == ("box", "all", "closed for maintenance: new fans")
    assert chart.rows[1][3:] == (
        "expected 2026-03-01 13:00:00 (2026-03-01 12:30:00 to 2026-03-01 13:30:00)",
        "expected 2026-03-01 16:00:00 (2026-03-01 15:00:00 to unknown)",
    )
    assert chart.rows[3][4].startswith("still allocated, expected until 2026-03-01 13:00:00 (")


def test_moments_stand_at_the_readers_clock_and_the_axis_names_its_zone() -> None:
    bars = (Bar(node="n", gpu_index=0, start=NOW - HOUR, end=NOW, job=None),)
    with timezone.override(ZoneInfo("Asia/Kolkata")):
        chart = drawable(
            gpu_timeline.lanes_chart(
                [Lane(name="box", gpus=1, joined_at=JOINED, bars=bars)], since=NOW - HOUR, now=NOW
            )
        )
    assert chart.data[0]["base"] == ["2026-03-01T16:30:00"]
    assert chart.layout["xaxis"]["range"] == ["2026-03-01T16:30:00", "2026-03-01T17:30:00"]
    assert chart.layout["xaxis"]["title"]["text"] == "time in Asia/Kolkata"
    assert chart.rows[0][-2:] == ("2026-03-01 16:30:00", "2026-03-01 17:30:00")


def test_the_axes_of_few_things_have_room_and_whole_ticks() -> None:
    alone = drawable(
        gpu_timeline.lanes_chart(
            [Lane(name="box", gpus=1, joined_at=JOINED, bars=())], since=NOW - HOUR, now=NOW
        )
    )
    assert alone.layout["height"] >= 190, "two lines of dates below, a legend above"
    top, bottom = alone.layout["yaxis"]["range"]
    assert top + bottom == 0, "a single GPU lies in the middle"
    ended = {"succeeded": [0, 2], "failed": [1, 0]}
    few = drawable(usage.outcomes_chart(ended, [NOW - HOUR, NOW]))
    assert few.layout["yaxis"]["dtick"] == 1
    many = drawable(usage.outcomes_chart({**ended, "succeeded": [0, 200]}, [NOW - HOUR, NOW]))
    assert "dtick" not in many.layout["yaxis"]


def test_two_ticks_at_least_stand_between_values_that_are_close() -> None:
    for low in (1.1, 13.0, 70.0, 4000.0, 90_000.0, 1e6):
        near = duration_axis("", (low, 3 * low))["tickvals"]
        assert sum(low <= tick <= 3 * low for tick in near) >= 2, low
        assert sum(low <= tick <= 3 * low for tick in log_axis("", (low, 3 * low))["tickvals"]) >= 2, low
    assert len(duration_axis("", (1.0, 1e6))["tickvals"]) < len(near), "far ends need fewer"


def test_the_first_slice_of_a_young_portal_is_a_mark_as_a_line_needs_two() -> None:
    slices = [NOW - HOUR, NOW]
    young = Utilisation(offered=[0.0, 100.0], held=[0.0, 40.0], own=None)
    assert drawable(usage.utilisation_chart(young, slices)).data[0]["mode"] == "lines+markers"


def test_a_single_judged_day_is_the_only_tick() -> None:
    record = TrackRecord(day=NOW.date(), runs=1, coverage=0.0, median_error=1.2, alarm="")
    chart = drawable(nightly([record]))
    assert chart.layout["xaxis"]["tickvals"] == ["2026-03-01"]
    assert "only 1 run could be checked" in chart.summary
    assert "%" not in chart.summary, "a share of few runs says nothing"
    assert chart.summary.endswith("There was no alarm in 1 day.")


def test_lanes_without_nodes_say_so() -> None:
    assert "No node" in drawable(gpu_timeline.lanes_chart([], since=NOW - HOUR, now=NOW)).summary


def pair(measured: float, at: datetime = NOW) -> Pair:
    return Pair(at=at, promised=100.0, low=80.0, high=125.0, measured=measured)


def test_the_scatter_parts_kept_promises_from_broken_ones() -> None:
    chart = drawable(track_record.scatter("duration_s", [pair(100.0), pair(200.0)]))
    assert [trace["name"] for trace in chart.data] == ["as promised", "within the interval", "outside"]
    assert chart.data[0]["x"] == [100.0, 200.0]
    assert chart.data[1]["error_x"]["arrayminus"] == [20.0]
    assert [row[-1] for row in chart.rows] == ["outside", "inside"]


def test_only_the_latest_are_drawn_and_that_is_said() -> None:
    chart = drawable(track_record.scatter("duration_s", [pair(100.0)] * 400))
    assert len(chart.data[1]["x"]) == track_record.SHOWN
    assert "Only the latest 200 are shown" in chart.summary


def test_the_rolling_error_needs_a_window_and_follows_a_drift() -> None:
    assert track_record.rolling_median([pair(100.0)] * (track_record.WINDOW - 1)) == []
    drift = [pair(100.0)] * 40 + [pair(200.0)] * 40
    line = track_record.rolling_median(drift)
    assert (line[0][1], line[-1][1]) == (0.0, 0.5)
    assert "0% to 50%" in drawable(track_record.error_over_time({"duration_s": drift})).summary


def period_of(**query: str) -> tuple[timedelta, bool]:
    found = chosen(query, now=NOW, first=lambda: NOW - timedelta(days=100))
    return found.period.end - found.period.start, bool(found.errors)


@pytest.mark.parametrize(
    ("query", "length"),
    [
        ({}, timedelta(days=7)),
        ({"range": "24h"}, timedelta(days=1)),
        ({"range": "all"}, timedelta(days=100)),
        ({"from": "2026-02-01", "to": "2026-02-03"}, timedelta(days=3)),
        ({"from": "2026-03-01T10:00", "to": "2026-03-01T11:30"}, timedelta(hours=1.5)),
        ({"to": "2026-02-03"}, timedelta(days=7)),
        ({"from": "2026-02-27"}, timedelta(days=2.5)),
    ],
)
def test_the_address_names_the_period(query: dict[str, str], length: timedelta) -> None:
    assert period_of(**query) == (length, False)


@pytest.mark.parametrize(
    "query",
    [
        {"range": "decade"}, {"from": "yesterday"}, {"to": "2026-13-01"}, {"from": "2027-01-01"},
        {"from": "2026-02-03", "to": "2026-02-01"}, {"to": "9999-12-31", "from": "9999-12-31"},
        {"from": "0001-01-01", "to": "0001-01-01T00:00"}, {"from": "2026-02-30"}, {"from": "1" * 400},
    ],
)  # fmt: skip
def test_a_period_that_makes_no_sense_is_told(query: dict[str, str]) -> None:
    assert period_of(**query)[1]


def test_figures_are_made_once_a_minute_for_each_reader() -> None:
    made: list[int] = []
    when = chosen({}, now=NOW, first=lambda: None).period

    def make() -> list[int]:
        made.append(1)
        return made

    ada, eve, root, other_root = User(pk=1), User(pk=2), User(pk=3, is_staff=True), User(pk=4, is_staff=True)
    for reader in (ada, ada, eve, root, other_root):
        remembered("page", reader, when, make)
    assert len(made) == 3


def test_a_single_job_and_a_single_promise_are_told_as_one() -> None:
    assert " over 1 job: " in distributions.distribution(of([(409, 1)]), distributions.JCT).summary
    pair = Pair(at=NOW, promised=1.0, low=None, high=None, measured=2.0)
    summary = track_record.scatter("duration_s", [pair]).summary
    assert summary == "The median error of the latest 1 promise is 50%."
