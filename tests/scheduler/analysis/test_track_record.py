"""Promises against measurements: coverage, bias and whose runs one sees."""

from __future__ import annotations

import math
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from knowledge.core.domain.types import Config, Interval, Option, Source
from knowledge.services import record_execution
from portal.accounts.models import User
from scheduler.models import Attempt
from scheduler.selectors.analysis import track_record
from scheduler.selectors.analysis.period import Period
from tests.harness import world

CONFIG = Config(
    model_name="builtin/tiny-llama", tuning="lora", gpu_model="cpu", number_gpus=1, tokens_per_sample=128,
    per_device_batch_size=1,
)  # fmt: skip


def option(source: Source = Source.MODEL, **values: Any) -> Option:
    """Promises 100 of everything, 80 to 125."""
    promise = Interval(100.0, 80.0, 125.0)
    return Option(
        config=CONFIG, p_valid=0.9, tokens_per_second=promise, peak_memory_bytes=promise, startup_s=1.0,
        duration_s=promise, cost=promise, source=source, **values,
    )  # fmt: skip


def measured(owner: User, seconds: float, *, source: Source = Source.MODEL, rate: float = 100.0) -> None:
    """A run of one of the owner's jobs that took so long."""
    now = timezone.now()
    attempt = Attempt.objects.create(
        job=world.job(owner), fence=1, option={}, created_at=now, ended_at=now, outcome="succeeded"
    )
    record_execution(
        attempt_id=attempt.pk, config=CONFIG, status="ok", now=now, tokens_per_second=rate, runtime_s=seconds,
        peak_memory_bytes=100, promise=option(source),
    )  # fmt: skip


@pytest.fixture
def ada(db: None) -> User:
    return world.user("ada")


@pytest.fixture
def period() -> Period:
    now = timezone.now()
    return Period(now - timedelta(hours=1), now + timedelta(hours=1))


def test_coverage_and_bias_of_each_figure_and_source(ada: User, period: Period) -> None:
    for seconds in (90.0, 110.0, 130.0):
        measured(ada, seconds)
    measured(ada, 100.0, source=Source.PRIOR)
    found = {(v.target, v.source): v for v in track_record.verdicts(ada, period)}
    assert len(found) == 6
    duration = found["duration_s", Source.MODEL]
    assert (duration.runs, duration.judged, duration.inside) == (3, 3, 2)
    assert duration.log_ratio == pytest.approx(math.log(0.9 * 1.1 * 1.3) / 3)
    assert found["duration_s", Source.PRIOR].inside == 1


def test_stated_defaults_promise_nothing(ada: User, period: Period) -> None:
    measured(ada, 100.0, source=Source.DEFAULT)
    assert track_record.verdicts(ada, period) == []
    assert track_record.latest_pairs(ada, period)[0]["duration_s"] == []


def test_the_latest_runs_come_oldest_first(
    ada: User, period: Period, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(track_record, "LATEST", 2)
    for seconds in (90.0, 110.0, 130.0):
        measured(ada, seconds)
    assert [pair.measured for pair in track_record.latest_pairs(ada, period)[0]["duration_s"]] == [
        110.0,
        130.0,
    ]
    pair = track_record.latest_pairs(ada, period)[0]["peak_memory_bytes"][0]
    assert (pair.promised, pair.low, pair.high) == (100.0, 80.0, 125.0)


def test_runs_of_others_and_imported_ones_are_not_seen(ada: User, period: Period) -> None:
    measured(world.user("eve"), 100.0)
    record_execution(
        attempt_id=uuid.uuid4(), config=CONFIG, status="ok", now=timezone.now(), tokens_per_second=5.0
    )
    assert track_record.verdicts(ada, period) == []
    assert track_record.verdicts(world.admin(), period)[0].runs == 1
    assert track_record.first_promise(ada) is None
