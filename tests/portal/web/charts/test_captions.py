"""Each chart's caption says what its data show: every number of it is computed anew from what is drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.core.domain.types import Config, Interval, Option, Source
from knowledge.models import TrackRecord
from portal.web.charts import distributions, gpu_timeline, track_record, usage
from portal.web.charts.drift import nightly
from portal.web.charts.lengths import lengths_histogram
from portal.web.charts.pareto import tradeoff
from portal.web.charts.simulation import jct_chart
from portal.web.charts.step_metrics import step_chart
from portal.web.templatetags.portal_format import duration, number, percent, size
from scheduler.models import Metric
from scheduler.selectors.analysis.analytics import FailedAttempts, Utilisation
from scheduler.selectors.analysis.histogram import of
from scheduler.selectors.analysis.track_record import Pair
from scheduler.selectors.cluster.gpu_lanes import Bar, Lane
from trainer.step_metrics import STEP_CHARTS, Caption

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
amounts = st.floats(0.5, 5_000)
counts = st.integers(0, 40)
few = st.lists(amounts, min_size=1, max_size=8)


def drawn(figure: dict[str, Any], axis: str = "y", trace: int = 0) -> list[float]:
    return list(figure["data"][trace][axis])


@dataclass
class Line:
    """A line of progress with one value for every metric."""

    step: int
    told: float | None

    def value(self, _: Any) -> float | None:
        return self.told


@given(st.sampled_from(sorted(STEP_CHARTS)), st.lists(st.none() | amounts, min_size=1, max_size=12))
def test_step_metrics(name: str, values: list[float | None]) -> None:
    figure = step_chart(name, [Line(3 * step, value) for step, value in enumerate(values, start=1)])
    metric = STEP_CHARTS[name][0]
    steps, ys, caption = drawn(figure, "x"), drawn(figure), figure["summary"]
    if not ys:
        assert "No " in caption
    elif metric.caption is Caption.SPREAD:
        assert f"{median(ys):{metric.digits}}" in caption
        assert f"between {min(ys):{metric.digits}} and {max(ys):{metric.digits}}." in caption
    elif len(ys) == 1:
        assert caption.endswith(f" was {ys[0]:{metric.digits}} at step {steps[0]:,}.")
    else:
        assert f"from {ys[0]:{metric.digits}} at step {steps[0]:,}" in caption
        assert f"to {ys[-1]:{metric.digits}} at step {steps[-1]:,}" in caption
        extreme = min(ys) if metric.caption is Caption.LOWEST else max(ys)
        assert caption.endswith(f"was {extreme:{metric.digits}}.")


def test_the_loss_of_a_row_is_the_loss_of_its_chart() -> None:
    rows = [Metric(step=1, loss=2.5), Metric(step=2, loss=None), Metric(step=3, loss=1.25)]
    assert drawn(step_chart("loss", rows)) == [2.5, 1.25]


@given(st.lists(st.tuples(st.integers(-200, 900), st.integers(1, 9)), min_size=1, max_size=20))
def test_distributions(bins: list[tuple[int, int]]) -> None:
    found = of(dict(bins).items())
    chart = distributions.distribution(found, distributions.WAIT)
    area, *marks = chart.data
    assert f"over {sum(area['y']):,} job" in chart.summary
    for mark in marks:
        name, value = mark["text"][1], mark["x"][0]
        assert f"{duration(value)} ({name})" in chart.summary


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1, 5_000)), min_size=1, max_size=8))
def test_utilisation(slices: list[tuple[float, float]]) -> None:
    held, offered = [share * all_ for share, all_ in slices], [all_ for _, all_ in slices]
    moments = [NOON + k * HOUR for k in range(len(slices))]
    chart = usage.utilisation_chart(Utilisation(offered=offered, held=held, own=None), moments)
    peak = max(drawn(chart.figure))
    assert f"the peak was {percent(peak)} in the" in chart.summary or abs(peak * 100 % 1 - 0.5) < 0.02
    mean = sum(y * all_ for y, all_ in zip(drawn(chart.figure), offered, strict=True)) / sum(offered)
    near = {percent(mean), percent(mean + 1e-4), percent(mean - 1e-4)}
    assert any(f"average {reported} of the GPU time" in chart.summary for reported in near)


@given(st.lists(st.tuples(counts, counts, counts), min_size=1, max_size=6))
def test_outcomes(slices: list[tuple[int, int, int]]) -> None:
    states = ("succeeded", "failed", "cancelled")
    by_state = {state: [one[k] for one in slices] for k, state in enumerate(states)}
    chart = usage.outcomes_chart(by_state, [NOON + k * HOUR for k in range(len(slices))])
    totals = {trace["name"]: sum(trace["y"]) for trace in chart.data}
    if not totals:
        assert "No jobs ended" in chart.summary
        return
    assert chart.summary.startswith(f"{sum(totals.values()):,} job")
    assert all(f"{n:,} {state}" in chart.summary for state, n in totals.items())


@given(st.dictionaries(st.sampled_from(["oom", "lost", "error", "killed"]), st.integers(1, 40)))
def test_failures(attempts: dict[str, int]) -> None:
    failed = [FailedAttempts(outcome, "", "", count) for outcome, count in attempts.items()]
    chart = usage.failures_chart(failed, {})
    total = sum(drawn(chart.figure, "x")) if chart.data else 0
    assert chart.summary.startswith(f"{total:,} attempt" if total else "No attempts failed.")


@given(st.dictionaries(st.sampled_from(["A100", "H100", "cpu"]), st.integers(0, 900), min_size=1))
def test_throughput(models: dict[str, int]) -> None:
    chart = usage.throughput_chart({model: of([(middle, 3)]) for model, middle in models.items()})
    for model, rate in zip(chart.data[0]["y"], chart.data[0]["x"], strict=True):
        near = {number(rate), number(rate * 0.99999), number(rate * 1.00001)}
        assert any(f"{model} {reported}" in chart.summary for reported in near)


pairs = st.builds(
    lambda promised, measured, wide: Pair(
        at=NOON, promised=promised, low=promised / wide, high=promised * wide, measured=measured
    ),
    amounts, amounts, st.floats(1, 3),
)  # fmt: skip


@given(st.lists(pairs, min_size=1, max_size=30))
def test_promised_against_measured(found: list[Pair]) -> None:
    chart = track_record.scatter("tokens_per_second", found)
    _, *groups = chart.data
    points = [point for group in groups for point in zip(group["x"], group["y"], strict=True)]
    assert len(points) == len(found)
    assert f"latest {len(found):,} promise" in chart.summary
    middle = median(abs(promised - measured) / measured for promised, measured in points)
    ends = [middle + by * (1 + middle) for by in (-1.1e-3, 1.1e-3)]  # points are drawn with four digits
    reported = [int(text) for text in re.findall(r"(\d+)%", chart.summary)]
    assert any(round(100 * ends[0]) <= one <= round(100 * ends[1]) for one in reported)
    by_name = {group["name"]: len(group["x"]) for group in groups}
    inside = sum(track_record.inside(pair) is True for pair in found)
    assert by_name.get(track_record.MARKS[True][0], 0) == inside


@given(st.lists(pairs, min_size=track_record.WINDOW, max_size=track_record.WINDOW + 6))
def test_the_error_over_time(found: list[Pair]) -> None:
    chart = track_record.error_over_time({"duration_s": found})
    line = drawn(chart.figure)
    for end in (line[0], line[-1]):
        assert any(percent(end + by) in chart.summary for by in (-5e-5, 0, 5e-5))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 2), st.booleans()), min_size=1, max_size=9))
def test_the_nightly_judgement(days: list[tuple[float, float, bool]]) -> None:
    records = [
        TrackRecord(
            day=date(2026, 3, 1) + timedelta(days=k), runs=40, coverage=coverage, median_error=error,
            alarm="It drifts." if alarm else "",
        )
        for k, (coverage, error, alarm) in enumerate(days)
    ]  # fmt: skip
    chart = nightly(records)
    by_name = {trace["name"]: trace for trace in chart.data}
    assert chart.summary.startswith(f"On {by_name['coverage']['x'][-1]}, ")
    assert percent(by_name["coverage"]["y"][-1]) in chart.summary
    assert percent(by_name["median error"]["y"][-1]) in chart.summary
    alarms = len(by_name["alarm"]["x"]) if "alarm" in by_name else 0
    expected = f" on {alarms} of {len(days)} day" if alarms else f" no alarm in {len(days)} day"
    assert expected in chart.summary


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-7200, 3000), st.booleans()), max_size=4))
def test_lanes(held: list[tuple[int, int, bool]]) -> None:
    """One bar for each GPU at most."""
    bars = [
        Bar(
            node="n", gpu_index=gpu, start=NOON + timedelta(seconds=start),
            end=None if still else NOON + timedelta(seconds=3000), job=None,
        )
        for gpu, (start, still) in {gpu: (start, still) for gpu, start, still in held}.items()
    ]  # fmt: skip
    lane, now = Lane(name="box", gpus=4, joined_at=NOON, bars=tuple(bars)), NOON + HOUR
    chart = gpu_timeline.lanes_chart([lane], since=NOON, now=now)
    milliseconds = sum(sum(trace["x"]) for trace in chart.data)
    assert f"{percent(milliseconds / (4 * 3_600_000))} of their time" in chart.summary
    assert f"{sum(bar.end is None for bar in bars)} of 4 are" in chart.summary


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 50)), min_size=1, max_size=8))
def test_lengths_of_rows(rows: list[tuple[int, int]]) -> None:
    bounds = [[2**power, n] for power, n in sorted(dict(rows).items())]
    chart = lengths_histogram(bounds)
    total, seen, middle = sum(n for _, n in bounds), 0, 0
    for bound, n in bounds:
        seen += n
        middle = middle or (bound if 2 * seen >= total else 0)
    assert sum(drawn(chart)) == total
    assert f"at most {size(middle)}; the longest has at most {size(bounds[-1][0])}." in chart["summary"]


def option(gpus: int, seconds: float, cost: float) -> Option:
    config = Config(
        model_name="m", tuning="lora", gpu_model="L4", number_gpus=gpus, tokens_per_sample=64,
        per_device_batch_size=1,
    )  # fmt: skip
    known = Interval(1.0)
    return Option(
        config=config, p_valid=1.0, tokens_per_second=known, peak_memory_bytes=known, startup_s=1.0,
        duration_s=Interval(seconds), cost=Interval(cost), source=Source.PRIOR,
    )  # fmt: skip


@given(st.lists(st.tuples(amounts, st.floats(0.1, 900)), min_size=1, max_size=6), st.booleans())
def test_time_against_cost(places: Sequence[tuple[float, float]], priced: bool) -> None:
    options = [
        option(k, seconds, cost if priced else 0.0) for k, (seconds, cost) in enumerate(places, start=1)
    ]
    figure = tradeoff(options)
    unit = 60.0 if "minutes" in figure["layout"]["xaxis"]["title"]["text"] else 1.0
    scale = 3600.0 if "hours" in figure["layout"]["xaxis"]["title"]["text"] else unit
    assert f"in {duration(min(drawn(figure, 'x')) * scale)}." in figure["summary"]
    assert f"for {number(min(drawn(figure)))}" in figure["summary"]


@given(st.lists(st.tuples(amounts, st.floats(0, 1)), min_size=1, max_size=5))
def test_simulated_policies(played: list[tuple[float, float]]) -> None:
    results = [
        {"policy": f"p{k}", "jct_mean_s": jct, "wait_mean_s": jct * waits}
        for k, (jct, waits) in enumerate(played)
    ]
    chart = jct_chart(results, in_force="p0")
    waits, runs = drawn(chart.figure, "x"), drawn(chart.figure, "x", 1)
    totals = [wait + run for wait, run in zip(waits, runs, strict=True)]
    assert any(duration(min(totals) + by) in chart.summary for by in (-0.1, -0.05, 0, 0.05, 0.1))
    best = chart.data[0]["y"][-1]
    assert best in chart.summary or "all policies" in chart.summary
