"""The pace of a training: the promise at first, what was measured in the end, and honest bounds between."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from knowledge.core.domain.types import Interval
from scheduler.core.pace import Pace, measured_pace, promised_pace, training_left

PROMISED = Interval(1.0, 0.6, 1.6)
TOTAL = 100


def after(seconds: Iterable[float], pace: Pace | None = None, total: int = TOTAL) -> Pace:
    """The pace after steps that took so long."""
    pace = pace or promised_pace(PROMISED)
    for taken in seconds:
        pace = measured_pace(pace, step=pace.step + 1, total=total, step_s=taken)
    return pace


def width(left: Interval) -> float:
    assert left.low
    assert left.high
    return left.high / left.low


def test_the_promise_is_told_at_first():
    left = training_left(promised_pace(PROMISED), TOTAL)
    assert left.value == pytest.approx(100, rel=0.01)
    assert left.low
    assert left.high
    assert 50 < left.low < 75
    assert 160 < left.high < 250


def test_measured_steps_take_the_place_of_the_promise():
    assert after([2.0] * 3).step_s == pytest.approx(2, rel=0.1)
    assert after([2.0] * 20).step_s == pytest.approx(2, rel=0.02)


def test_bounds_narrow_with_evidence():
    widths = [width(training_left(after([1.0] * count), TOTAL)) for count in (0, 1, 5, 20, 50, 90)]
    assert widths == sorted(widths, reverse=True)


def test_a_slow_first_step_says_little():
    assert after([5.0]).step_s < 2
    assert after([5.0, 1.0, 1.0]).step_s == pytest.approx(1, rel=0.15)


def test_one_stalled_step_is_no_slow_down_and_several_are():
    steady = after([1.0] * 30)
    stalled = after([60.0], steady)
    assert stalled.step_s < 1.3
    assert width(training_left(stalled, TOTAL)) > width(training_left(steady, TOTAL))
    assert after([1.0], stalled).step_s == pytest.approx(1, rel=0.1)
    assert after([2.0] * 3, steady).step_s == pytest.approx(2, rel=0.15)


def test_a_promise_that_was_far_off_is_forgotten_at_the_second_surprise():
    assert after([100.0] * 3).step_s == pytest.approx(100, rel=0.4)
    assert after([100.0] * 5).step_s == pytest.approx(100, rel=0.1)


def test_noise_is_learnt_from_the_reports():
    calm, noisy = after([1.0] * 40), after([0.7, 1.4] * 20)
    assert noisy.noise > 4 * calm.noise
    assert noisy.step_s == pytest.approx(1.05, rel=0.1)


def test_a_report_of_many_steps_counts_for_more():
    one = measured_pace(after([1.0] * 5), step=6, total=1000, step_s=1.2)
    many = measured_pace(after([1.0] * 5), step=55, total=1000, step_s=1.2)
    assert many.step_s > one.step_s
    assert many.trained_s == pytest.approx(5 + 50 * 1.2)


@pytest.mark.parametrize("step", [3, 5])
def test_a_report_that_brings_no_step_changes_nothing(step: int):
    pace = after([1.0] * 5)
    assert measured_pace(pace, step=step, total=TOTAL, step_s=9.0) == pace


def test_a_step_without_a_duration_changes_nothing():
    pace = after([1.0] * 5)
    assert measured_pace(pace, step=6, total=TOTAL, step_s=0.0) == pace


def test_without_a_promise_the_first_step_is_believed():
    nothing = promised_pace(None)
    assert not nothing.known
    first = after([300.0], nothing)
    assert first.known
    assert first.step_s == pytest.approx(300, rel=0.15)


def test_a_promise_without_bounds_is_believed_little():
    pace = after([3.0] * 3, promised_pace(Interval(1.0)))
    assert pace.step_s == pytest.approx(3, rel=0.1)


def test_a_finished_training_has_nothing_left():
    assert training_left(after([1.0] * TOTAL), TOTAL) == Interval(0.0, 0.0, 0.0)
