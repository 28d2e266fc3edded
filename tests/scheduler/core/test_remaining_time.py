"""The time left of an attempt: its parts, silences, and how likely a limit is passed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowledge.core.domain.types import Config, Interval, Option, Source
from scheduler.core.pace import Pace, measured_pace, promised_pace
from scheduler.core.remaining_time import (
    LATENCY_S,
    Remaining,
    Work,
    chance_beyond,
    corrected,
    promised_remaining,
    time_left,
)

WORK = Work(total_steps=100, startup_s=20.0, saving_s=2.0)
PROMISED = promised_pace(Interval(1.0, 0.6, 1.6))
OPTION = Option(
    config=Config(
        model_name="builtin/tiny-llama",
        tuning="lora",
        gpu_model="cpu",
        number_gpus=1,
        tokens_per_sample=64,
        per_device_batch_size=2,
    ),
    p_valid=1.0,
    tokens_per_second=Interval(128.0, 64.0, 256.0),
    peak_memory_bytes=Interval(1e9),
    startup_s=10.0,
    duration_s=Interval(10.0 + 100 + 30 + 1, 80.0, 240.0),
    cost=Interval(0.0),
    source=Source.MODEL,
    steps=100,
    padded_tokens=64.0,
)


def remaining(work: Work, pace: Pace, silent_s: float = 0.0) -> Interval:
    left = time_left(work, pace, silent_s=silent_s)
    assert left is not None
    assert left.low is not None
    assert left.high is not None
    assert 0 <= left.low <= left.value <= left.high
    return left


def trained(steps: int, step_s: float = 1.0, saved_s: float = 0.0) -> Pace:
    pace = PROMISED
    for step in range(1, steps + 1):
        pace = measured_pace(
            pace, step=step, total=100, step_s=step_s, saved_s=saved_s * step / steps if saved_s else None
        )
    return pace


def test_nothing_is_told_where_nothing_is_known():
    assert time_left(WORK, promised_pace(None), silent_s=0) is None


def test_all_parts_are_in_the_promise():
    assert remaining(WORK, PROMISED).value == pytest.approx(20 + 100 + 2, rel=0.01)
    assert remaining(WORK, trained(50)).value == pytest.approx(50 + 2, rel=0.03)


def test_the_start_up_passes_and_one_that_lasts_takes_nothing_off_the_training():
    assert remaining(WORK, PROMISED, 15.0).value == pytest.approx(5 + 100 + 2, rel=0.01)
    late = remaining(WORK, PROMISED, 80.0)
    assert late.value == pytest.approx(100 + 2, rel=0.01)
    assert (late.high or 0) - (remaining(WORK, PROMISED, 20.0).high or 0) == pytest.approx(60)


def test_a_silence_is_work_for_a_moment_and_then_a_stall():
    pace = trained(50)
    before = remaining(WORK, pace)
    assert remaining(WORK, pace, 3.0).value == pytest.approx(before.value - 3)
    stalled = remaining(WORK, pace, 600.0)
    assert stalled.value == pytest.approx(before.value - LATENCY_S - 1, abs=0.2)
    assert (stalled.high or 0) > (before.high or 0) + 500


def test_evaluations_that_are_left_count_as_promised_or_as_measured():
    work = replace(WORK, evaluation_s=10.0, evaluations=4, steps_per_epoch=30.0)
    assert [work.evaluations_left(step) for step in (0, 30, 31, 95, 100)] == [4, 4, 3, 1, 1]
    plain = remaining(WORK, trained(50)).value
    assert remaining(work, trained(50)).value == pytest.approx(plain + 3 * 10)
    assert remaining(work, replace(trained(50), evaluated_s=4.0)).value == pytest.approx(plain + 3 * 4)


def test_an_evaluation_that_is_due_is_no_stall():
    work = replace(WORK, evaluation_s=60.0, evaluations=2, steps_per_epoch=50.0)
    assert remaining(work, trained(50), 40.0).value == pytest.approx(remaining(work, trained(50)).value - 40)
    assert remaining(work, trained(49), 40.0).value > remaining(work, trained(49)).value - 10


def test_checkpoints_go_on_taking_their_share():
    assert remaining(WORK, trained(50, saved_s=5.0)).value == pytest.approx(50 * 1.1 + 2, rel=0.03)


def test_the_end_of_a_training_is_evaluation_and_saving():
    work = replace(WORK, evaluation_s=60.0, evaluations=1)
    assert remaining(work, trained(100)).value == pytest.approx(62)
    assert remaining(work, trained(100), 40.0).value == pytest.approx(22)
    assert remaining(work, trained(100), 1000.0).value == 0


def test_bounds_say_how_likely_a_limit_is_passed():
    left = Interval(100.0, 80.0, 150.0)
    assert chance_beyond(left, 100.0) == pytest.approx(0.5)
    assert chance_beyond(left, 80.0) == pytest.approx(0.9, abs=0.001)
    assert chance_beyond(left, 150.0) == pytest.approx(0.1, abs=0.001)
    assert chance_beyond(left, 0.0) == 1.0
    assert chance_beyond(left, -5.0) == 1.0
    assert chance_beyond(Interval(0.0, 0.0, 0.0), 1.0) == 0.0


@given(
    st.floats(0.1, 1e6), st.floats(0.0, 1.0), st.floats(1.0, 10.0), st.floats(0.0, 1e7), st.floats(0.0, 1e7)
)
@example(value=2.0, low=0.0, high=1.0, one=0.0, two=5e-324)
def test_a_later_limit_is_never_likelier_passed(
    value: float, low: float, high: float, one: float, two: float
):
    left = Interval(value, value * low, value * high)
    earlier, later = sorted((one, two))
    assert 0 <= chance_beyond(left, later) <= chance_beyond(left, earlier) <= 1


@given(st.integers(0, 100), st.floats(0.01, 100.0), st.floats(0.0, 1e6))
def test_bounds_hold_the_value_at_every_moment(steps: int, step_s: float, silent_s: float):
    remaining(WORK, trained(steps, step_s), silent_s)


def test_the_promise_of_an_option_is_its_duration():
    remaining = promised_remaining(OPTION, None, began_at=1000.0)
    left = remaining.left(1000.0)
    assert left is not None
    assert left.value == pytest.approx(OPTION.duration_s.value, rel=0.01)
    counted = promised_remaining(OPTION, None, began_at=1000.0, rows=50, total_steps=100)
    assert (counted.work.evaluations, counted.work.evaluation_s) == (4, pytest.approx(30 / 4))
    assert counted.work.steps_per_epoch == 25


def test_an_attempt_that_goes_on_does_the_rest():
    left = promised_remaining(OPTION, None, began_at=0.0, step=60).left(0.0)
    assert left is not None
    assert left.value == pytest.approx(10 + 40 + 30 + 1, rel=0.01)


def test_stated_defaults_promise_nothing():
    option = replace(OPTION, tokens_per_second=Interval(0.0), duration_s=Interval(0.0))
    assert promised_remaining(option, None, began_at=0.0).left(0.0) is None


def test_it_is_stored_and_read_as_it_was():
    remaining = replace(promised_remaining(OPTION, None, began_at=12.5, rows=50), pace=trained(7))
    assert Remaining.from_json(json.loads(json.dumps(remaining.as_json()))) == remaining


def test_a_clock_that_was_set_back_is_no_silence():
    remaining = promised_remaining(OPTION, None, began_at=1000.0)
    assert remaining.left(500.0) == remaining.left(1000.0)


def test_a_promise_is_corrected_by_what_was_measured():
    promised = replace(OPTION, cost=OPTION.duration_s.scaled(0.01))
    remaining = replace(promised_remaining(promised, None, began_at=0.0), heard_at=200.0)
    assert corrected(promised, remaining, so_far_s=10.0, now=200.0) == promised
    remaining = replace(remaining, pace=trained(50, step_s=2.0))
    newer = corrected(promised, remaining, so_far_s=110.0, now=200.0)
    assert newer.duration_s.value == pytest.approx(110 + 100 + 30 + 1, rel=0.05)
    assert newer.duration_s.low
    assert newer.duration_s.low < newer.duration_s.value
    assert newer.tokens_per_second.value == pytest.approx(64, rel=0.05)
    assert newer.cost.value == pytest.approx(newer.duration_s.value * 0.01)
    assert newer.peak_memory_bytes == promised.peak_memory_bytes
