"""Charts and figures: pure functions."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from knowledge.core.domain.types import Config, Interval, Option, Source
from portal.web.charts.chart import linear_duration_axis
from portal.web.charts.pareto import tradeoff
from portal.web.charts.simulation import jct_chart
from portal.web.charts.step_metrics import HEADINGS, MAX_POINTS, step_chart
from portal.web.templatetags.portal_format import duration, number, percent, size
from trainer.step_metrics import StepMetric


@dataclass
class Line:
    step: int
    loss: float | None = None
    eval_loss: float | None = None
    tokens_per_second: float | None = None
    others: dict[str, float] = field(default_factory=dict)

    def value(self, metric: StepMetric) -> float | None:
        return getattr(self, metric.column, None) if metric.column else self.others.get(metric.name)


def test_the_loss_curve_tells_its_story_in_words_too() -> None:
    figure = step_chart("loss", [Line(1, 3.0), Line(2, 1.0), Line(3, 2.0)])
    assert figure["data"][0]["x"] == [1, 2, 3]
    assert figure["summary"] == (
        "Training loss went from 3.000 at step 1 to 2.000 at step 3; the lowest was 1.000."
    )


def test_evaluation_is_a_line_of_its_own() -> None:
    figure = step_chart("loss", [Line(1, 3.0), Line(1, None, 2.5)])
    assert [trace["name"] for trace in figure["data"]] == ["training loss", "evaluation loss"]
    assert figure["layout"]["showlegend"]


def test_without_steps_the_chart_says_so() -> None:
    assert step_chart("loss", [])["summary"] == "No step has been measured yet."


def test_throughput_and_gradients_are_drawn_from_zero_with_their_unit() -> None:
    rows = [Line(1, None, None, 900.0, {"gradient_norm": 4.0}), Line(2, None, None, 1100.0)]
    rate, norm = (step_chart(name, rows) for name in ("throughput", "gradient-norm"))
    assert rate["summary"] == "1,000 tokens per second in the median of its reports, between 900 and 1,100."
    assert norm["summary"] == "Gradient norm was 4 at step 1."
    axes = [figure["layout"]["yaxis"] for figure in (rate, norm)]
    assert [axis["title"]["text"] for axis in axes] == ["tokens per second", "gradient norm"]
    assert all(axis["rangemode"] == "tozero" for axis in axes)


def test_what_an_older_node_does_not_measure_is_said_to_be_missing() -> None:
    assert step_chart("gradient-norm", [Line(1, 3.0)])["summary"] == "No gradient norm was reported."


def test_charts_are_named_on_the_page() -> None:
    assert [(heading.title, heading.label) for heading in HEADINGS] == [
        ("Loss", "Loss by optimiser step"),
        ("Learning rate", "Learning rate by optimiser step"),
        ("Throughput", "Tokens per second by optimiser step"),
        ("Gradient norm", "Gradient norm by optimiser step"),
    ]


@pytest.mark.parametrize("steps", [1, MAX_POINTS, MAX_POINTS + 1, 10 * MAX_POINTS + 7])
def test_long_curves_are_thinned_and_keep_their_end(steps: int) -> None:
    trace = step_chart("loss", [Line(step, 1.0) for step in range(steps)])["data"][0]
    assert len(trace["x"]) <= MAX_POINTS + 1
    assert trace["x"][-1] == steps - 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0.0 s"),
        (0.0234, "23.4 ms"),
        (9.96, "10.0 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (18_600, "5 h 10 min"),
        (183_600, "2 d 3 h"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (3 << 30, "3.0 GiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_sizes(count: float | None, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("lora", "lora"),
        (True, "yes"),
        (16, "16"),
        (123_456, "123,456"),
        (2e-4, "0.0002"),
        (1.23456, "1.23"),
    ],
)
def test_numbers(value: object, text: str) -> None:
    assert number(value) == text


def test_percentages() -> None:
    assert (percent(0.937), percent(None)) == ("94%", "–")


def option(gpu_model: str, seconds: float) -> Option:
    config = Config(
        model_name="m", tuning="lora", gpu_model=gpu_model, number_gpus=1, tokens_per_sample=64,
        per_device_batch_size=1,
    )  # fmt: skip
    value = Interval(seconds, None, None)
    return Option(
        config=config, p_valid=1.0, tokens_per_second=value, peak_memory_bytes=value, startup_s=1.0,
        duration_s=value, cost=value, source=Source.PRIOR,
    )  # fmt: skip


def test_each_gpu_model_has_a_look_of_its_own_and_a_ring_marks_the_recommended_one() -> None:
    models = ["L4", "A10", "H100", "cpu"]
    figure = tradeoff([option(model, seconds) for seconds, model in enumerate(models, start=1)])
    *groups, ring = figure["data"]
    assert [trace["name"] for trace in groups] == sorted(models)
    for part in ("color", "symbol"):
        assert len({trace["marker"][part] for trace in groups}) == len(models)
    assert (ring["name"], ring["x"], ring["marker"]["symbol"]) == ("recommended", [1.0], "circle-open")
    assert "Fastest: 1 × L4 in 1.0 s" in figure["summary"]


MEANS = {"fifo": 100.0, "srtf": 63.0}


def test_a_past_that_is_not_reproduced_well_warns_beside_the_winner() -> None:
    results = [{"policy": name, "jct_mean_s": mean, "wait_mean_s": 1.0} for name, mean in MEANS.items()]
    for simulated, caution in ((104.0, False), (149.0, True), (51.0, True)):
        known = {"real": {"jct_mean_s": 100.0}, "simulated": {"jct_mean_s": simulated}}
        summary = jct_chart(results, in_force="fifo", reproduced=known).summary
        assert summary.startswith("Simulated: srtf has the lowest mean JCT")
        assert ("smaller differences between policies say little." in summary) is caution
    assert "as it was differs from the real mean JCT by -49%" in summary
    failed = jct_chart(results, in_force="fifo", reproduced={"trouble": "no node"}).summary
    assert "say little" not in failed


def told_of(in_force: str = "fifo", **means: float) -> str:
    results = [{"policy": name, "jct_mean_s": mean, "wait_mean_s": 1.0} for name, mean in means.items()]
    return jct_chart(results, in_force=in_force).summary.removeprefix("Simulated: ")


def test_policies_that_do_the_same_are_not_ranked() -> None:
    assert told_of(fifo=71.0, sjf=71.0) == "all policies have the same mean JCT, 1 min 11 s."
    tied = told_of(fifo=71.0, sia=35.5, srtf=35.51)
    assert tied.startswith("sia and srtf have the lowest mean JCT, 36 s, 50% below the policy in force")


def test_a_simulation_is_compared_with_the_policy_in_force() -> None:
    assert told_of(fifo=71.0, sjf=90.0, srtf=35.5).endswith(
        "below the policy in force, fifo, with 1 min 11 s."
    )
    assert told_of(fifo=60.0, sjf=60.0, srtf=80.0) == (
        "fifo (in force) and sjf have the lowest mean JCT, 1 min."
    )
    assert told_of("sia", fifo=60.0, sjf=80.0).endswith("; the policy in force, sia, was not simulated.")


@pytest.mark.parametrize(
    ("longest_s", "message"),
    [
        (0.0, ["0"]),
        (0.6, ["0"]),
        (5.0, ["0", "1.0 s", "2.0 s", "3.0 s", "4.0 s", "5.0 s"]),
        (112.0, ["0", "20 s", "40 s", "1 min", "1 min 20 s", "1 min 40 s"]),
        (40_000.0, ["0", "2 h", "4 h", "6 h", "8 h", "10 h"]),
        (30 * 86_400.0, ["0", "5 d", "10 d", "15 d", "20 d", "25 d", "30 d"]),
    ],
)
def test_simulated_time_is_read_as_time(longest_s: float, message: list[str]) -> None:
    assert linear_duration_axis("simulated time", longest_s)["ticktext"] == message


def test_bars_of_a_simulation_tell_their_duration() -> None:
    chart = jct_chart([{"policy": "fifo", "jct_mean_s": 7200.0, "wait_mean_s": 600.0}], in_force="fifo")
    assert [trace["customdata"] for trace in chart.data] == [["10 min"], ["1 h 50 min"]]
    assert chart.layout["xaxis"]["ticktext"][:2] == ["0", "20 min"]
