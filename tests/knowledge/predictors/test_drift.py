"""Promises that stop holding raise an alarm, once a day."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from knowledge import selectors
from knowledge.core.domain.types import Interval
from knowledge.core.evaluate.drift import PromiseOutcome, assess_drift
from knowledge.predictors.drift_monitor import watch
from knowledge.services import record_execution
from tests.knowledge.conftest import NOW, TINY, promised

PROMISE = promised(100.0, 80.0, 125.0)


def outcomes(*rates: float) -> list[PromiseOutcome]:
    return [PromiseOutcome(Interval(100.0, 80.0, 125.0), rate) for rate in rates]


def test_runs_inside_their_intervals_raise_no_alarm() -> None:
    found = assess_drift(outcomes(*[100.0] * 17, *[200.0] * 3))
    assert (found.runs, found.coverage, found.alarm) == (20, 0.85, "")


def test_too_few_inside_raise_an_alarm_that_counts_them() -> None:
    assert "5 of the last 20" in assess_drift(outcomes(*[100.0] * 5, *[60.0] * 15)).alarm


def test_a_few_misses_among_few_runs_say_nothing() -> None:
    assert assess_drift(outcomes(60.0, 60.0, 60.0)).alarm == ""


def test_errors_that_double_raise_an_alarm_though_intervals_hold() -> None:
    found = assess_drift(outcomes(*[103.0] * 50, *[110.0] * 50))
    assert found.coverage == 1.0
    assert "rose from 3% to 9%" in found.alarm


@pytest.mark.django_db
def test_a_day_is_judged_once_and_the_alarm_is_shown() -> None:
    for _ in range(20):
        record_execution(
            attempt_id=uuid4(), config=TINY, status="ok", now=NOW, tokens_per_second=50.0, promise=PROMISE
        )
    assert watch(now=NOW).coverage == 0.0
    assert watch(now=NOW) is None
    assert "drifted" in selectors.drift_alarm()
    assert watch(now=NOW + timedelta(days=1)) is not None
    assert [record.runs for record in selectors.track_record()] == [20, 20]


@pytest.mark.django_db
def test_nothing_promised_is_nothing_judged() -> None:
    assert watch(now=NOW) is None
    assert selectors.drift_alarm() == ""
