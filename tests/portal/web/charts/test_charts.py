"""Charts and figures: pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from knowledge.core.domain.types import Config, Interval, Option, Source
from portal.web.charts.loss import MAX_POINTS, loss_curve
from portal.web.charts.pareto import tradeoff
from portal.web.charts.simulation import jct_chart
from portal.web.templatetags.portal_format import duration, number, percent, size


@dataclass
class Line:
    step: int
    loss: float | None = None
    eval_loss: float | None = None
    tokens_per_second: float | None = None


def test_the_loss_curve_tells_its_story_in_words_too() -> None:
    figure = loss_curve([Line(1, 3.0), Line(2, 1.0), Line(3, 2.0)])
    assert figure["data"][0]["x"] == [1, 2, 3]
    assert figure["summary"] == (
        "Training loss went from 3.000 at step 1 to 2.000 at step 3; the lowest was 1.000."
    )


def test_evaluation_is_a_line_of_its_own() -> None:
    figure = loss_curve([Line(1, 3.0), Line(1, None, 2.5)])
    assert [trace["name"] for trace in figure["data"]] == ["training loss", "evaluation loss"]
    assert figure["layout"]["showlegend"]


def test_without_steps_the_chart_says_so() -> None:
    assert loss_curve([])["summary"] == "No step has been measured yet."


@pytest.mark.parametrize("steps", [1, MAX_POINTS, MAX_POINTS + 1, 10 * MAX_POINTS + 7])
def test_long_curves_are_thinned_and_keep_their_end(steps: int) -> None:
    trace = loss_curve([Line(step, 1.0) for step in range(steps)])["data"][0]
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
        model_name="m", method="lora", gpu_model=gpu_model, number_gpus=1, tokens_per_sample=64,
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


def test_policies_that_do_the_same_are_not_ranked() -> None:
    alike = [{"policy": name, "jct_mean_s": 71.0, "wait_mean_s": 1.0} for name in ("fifo", "sjf")]
    assert "no policy stands out; the mean JCT of all is 1 min 11 s" in jct_chart(alike).summary
    better = {"policy": "srtf", "jct_mean_s": 35.5, "wait_mean_s": 1.0}
    assert "50% below" in jct_chart([*alike, better]).summary
