"""Promises that no longer hold are noticed.

They appear on the predictions page, at home for administrators, and in monitoring.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from knowledge.services import record_execution
from knowledge.tasks import train
from portal.accounts.models import User
from portal.events.models import Event
from tests.harness import world
from tests.knowledge.conftest import TINY, promised

PROMISE = promised(100.0, 80.0, 125.0)
ALARM = "Predictions are drifting."
PREDICTIONS = "/analytics/predictions/"

Measure = Callable[[float], None]


@pytest.fixture
def measure(person: User) -> Measure:
    """Return a function that ends 20 runs with a given rate and judges them.

    The runs were promised 100 tokens/s; the nightly task judges them.
    """

    def make(rate: float) -> None:
        for _ in range(20):
            record_execution(
                attempt_id=uuid4(), config=TINY, status="ok", now=timezone.now(), tokens_per_second=rate,
                promise=PROMISE,
            )  # fmt: skip
        train.run()

    return make


def as_admin() -> Client:
    client = Client()
    client.force_login(world.admin())
    return client


def told_to_monitors(name: str) -> float:
    lines = Client().get("/metrics").content.decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))


def test_a_drift_is_shown_to_everybody_who_looks_at_predictions(browser: Client, measure: Measure) -> None:
    measure(50.0)
    event = Event.objects.get(type="predictor.drift")
    assert (event.data["runs"], event.data["coverage"]) == (20, 0.0)
    page = browser.get(PREDICTIONS).content.decode()
    assert ALARM in page
    assert "Only 0 of the last 20 runs ended within" in page
    assert "There was an alarm on 1 of 1 day." in page


def test_administrators_are_told_at_home_and_monitors_in_a_number(browser: Client, measure: Measure) -> None:
    measure(50.0)
    assert ALARM in as_admin().get("/").content.decode()
    assert ALARM not in browser.get("/").content.decode()
    assert told_to_monitors("foretune_prediction_drift") == 1
    assert told_to_monitors("foretune_prediction_coverage_ratio") == 0


def test_promises_that_hold_raise_no_alarm(browser: Client, measure: Measure) -> None:
    measure(101.0)
    page = browser.get(PREDICTIONS).content.decode()
    assert ALARM not in page
    assert "100% of the last 20 runs ended within" in page
    assert ALARM not in as_admin().get("/").content.decode()
    assert told_to_monitors("foretune_prediction_drift") == 0


def test_without_any_run_nothing_is_said(browser: Client) -> None:
    assert "No run with a promise has been checked yet" in browser.get(PREDICTIONS).content.decode()
    assert told_to_monitors("foretune_prediction_drift") == 0
