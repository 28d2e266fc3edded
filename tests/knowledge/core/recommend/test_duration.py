"""Start-ups and durations, with what they may be off by."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from knowledge.core.domain.types import Config, GpuPool, Interval, Option, Prediction, Source, Workload
from knowledge.core.recommend import duration
from tests.knowledge.conftest import CATALOGUE

TINY = CATALOGUE.model("builtin/tiny-llama")
CPU = GpuPool(gpu_model="cpu", node_sizes=(4,), memory_bytes=2**33)
DATA = Workload(rows=100, lengths=((64, 100),))


def promised(startup: Interval, rate: Interval, data: Workload = DATA) -> Option:
    config = Config(
        model_name=TINY.model_name,
        tuning="lora",
        gpu_model="cpu",
        number_gpus=1,
        tokens_per_sample=64,
        per_device_batch_size=1,
    )
    prediction = Prediction(
        p_valid=1.0,
        tokens_per_second=rate,
        peak_memory_bytes=Interval(1e9),
        source=Source.EXACT,
        outside=False,
    )
    return duration.option(
        config, prediction, model=TINY, data=data, pool=CPU, startup=startup, epochs=1.0, max_steps=None
    )


def test_a_start_up_nobody_measured_may_be_off_by_the_stated_factor() -> None:
    assert duration.startup(TINY, "cpu", {}) == Interval(15.0, 7.5, 30.0)


def test_measured_start_ups_answer_by_their_median_and_spread() -> None:
    alike = duration.startup_of([6.0] * 20)
    apart = duration.startup_of([3.0, 6.0, 12.0] * 7)
    assert alike.value == apart.value == 6.0
    assert 6.0 / apart.low > duration.STARTUP_FACTOR > 6.0 / alike.low > 1.0
    assert duration.startup(TINY, "cpu", {("cpu", duration.size_class(TINY)): alike}) == alike


def test_a_model_of_another_size_starts_as_the_nearest_one_and_loads_its_weights() -> None:
    large = replace(TINY, parameters=8_000_000_000)
    measured = {("cpu", duration.size_class(TINY)): duration.startup_of([6.0])}
    found = duration.startup(large, "cpu", measured)
    assert found.value == pytest.approx(6.0 + 2 * large.parameters / duration.LOAD_BYTES_S, rel=0.01)
    assert found.high == pytest.approx(found.value * duration.STARTUP_FACTOR)
    assert duration.startup(large, "Tesla T4", measured).value > 30, "other GPUs say nothing"
    small = duration.startup(TINY, "cpu", {("cpu", duration.size_class(large)): Interval(20.0, 10.0, 40.0)})
    assert small.value == pytest.approx(10.0), "never less than half of it"


def test_one_start_up_says_little_of_the_next() -> None:
    once = duration.startup_of([6.0])
    assert once.high == pytest.approx(6.0 * 2 ** math.sqrt(3 / 4))


def test_a_run_that_is_nearly_all_start_up_is_as_sure_as_that() -> None:
    """The rate of a repeated configuration is known to a hair."""
    sure = Interval(6400.0, 6399.0, 6401.0)
    option = promised(Interval(12.0, 6.0, 24.0), sure)
    assert option.duration_s.value == pytest.approx(12 + 1 + 1)  # start-up, 6,400 tokens, saving
    assert option.duration_s.low == pytest.approx(8.0, abs=0.1)
    assert option.duration_s.high == pytest.approx(26.0, abs=0.1)


def test_start_up_and_training_are_off_independently() -> None:
    option = promised(Interval(12.0, 9.0, 15.0), Interval(640.0, 640 * 10 / 14, 640 * 10 / 6))
    assert option.duration_s.value == pytest.approx(12 + 10 + 1)
    assert option.duration_s.high - option.duration_s.value == pytest.approx(5.0)  # √(3² + 4²)
    assert option.duration_s.value - option.duration_s.low == pytest.approx(5.0)


def test_bounds_that_are_unknown_stay_unknown() -> None:
    option = promised(Interval(12.0, 6.0, 24.0), Interval(640.0))
    assert (option.duration_s.low, option.duration_s.high) == (None, None)


@pytest.mark.parametrize("validation_rows", [0, 40])
def test_the_parts_of_a_duration_add_up_to_it(validation_rows: int) -> None:
    data = Workload(rows=100, lengths=((64, 100),), validation_rows=validation_rows)
    made = promised(Interval(30.0, 15.0, 60.0), Interval(2000.0, 1000.0, 4000.0), data)
    reported = duration.parts(made, TINY)
    assert reported.step_s is not None
    assert reported.step_s.low == pytest.approx(reported.step_s.value / 2)
    assert reported.step_s.high == pytest.approx(reported.step_s.value * 2)
    steps_s = made.steps * reported.step_s.value
    assert reported.startup_s + steps_s + reported.evaluation_s + reported.saving_s == pytest.approx(
        made.duration_s.value
    )
    assert reported.evaluation_s == pytest.approx(steps_s * validation_rows / 100 / 3, abs=1e-6)


def test_stated_defaults_have_no_duration_of_a_step() -> None:
    nothing = replace(promised(Interval(30.0), Interval(2000.0)), tokens_per_second=Interval(0.0))
    assert duration.parts(nothing, None).step_s is None


def test_a_full_fine_tuning_of_a_model_that_nobody_knows_has_parts_as_well() -> None:
    made = promised(Interval(30.0), Interval(2000.0))
    full = replace(made, config=replace(made.config, model_name="some-one/model", tuning="full"))
    assert duration.parts(full, None).saving_s == 1.0
