"""A broker that is away costs latency and nothing else (F5, F6)."""

from __future__ import annotations

import functools
import time
from collections import Counter
from contextlib import nullcontext

import pytest
from django.test import Client

from portal import hints as sending
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.states import JobState
from tests.harness import world

SEVERAL = 5
TICK, POSITIONS = "scheduler.tasks.tick", "portal.events.tasks.give_positions"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of messages of each task sent to a working broker.

    Celery alone is replaced.
    """
    counted: Counter[str] = Counter()
    monkeypatch.setattr(sending, "no_try_before", 0.0)
    monkeypatch.setattr(sending.current_app, "connection_for_write", lambda **_: nullcontext())
    monkeypatch.setattr(sending.current_app, "send_task", lambda name, **_: counted.update([name]))
    return counted


@pytest.mark.django_db(transaction=True)
def test_requests_succeed_while_the_broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "no_try_before", 0.0)
    monkeypatch.setattr(sending.settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {"max_retries": 0})
    away = functools.partial(sending.current_app.connection_for_write, "redis://127.0.0.1:1/0")
    monkeypatch.setattr(sending.current_app, "connection_for_write", away)
    world.fake_node()
    world.job()
    assert sending.no_try_before > time.monotonic()
    assert tick().started == 1


@pytest.mark.django_db(transaction=True)
def test_a_tick_asks_for_the_next_one_once_however_much_it_starts(sent: Counter[str]) -> None:
    world.fake_node(slots=SEVERAL)
    for _ in range(SEVERAL):
        world.job()
    sent.clear()
    assert tick().started == SEVERAL
    assert sent == {TICK: 1, POSITIONS: 1, "scheduler.tasks.forecast_starts": 1}


@pytest.mark.django_db(transaction=True)
def test_a_request_that_changes_many_jobs_sends_one_hint_of_each_kind(sent: Counter[str]) -> None:
    admin, leaver = world.admin(), world.user()
    file = world.data_file(leaver)
    for _ in range(SEVERAL):
        world.job(leaver, training_file=file)
    client = Client()
    client.force_login(admin)
    sent.clear()
    answer = client.post(f"/api/users/user-{leaver.pk}/deactivate/", {}, content_type="application/json")
    assert answer.status_code == 200
    assert Job.objects.filter(state=JobState.CANCELLED).count() == SEVERAL
    assert sent == {TICK: 1, POSITIONS: 1}


@pytest.mark.django_db(transaction=True)
def test_changes_outside_of_requests_and_ticks_send_their_hints_at_once(sent: Counter[str]) -> None:
    world.job()
    assert sent == {TICK: 1, POSITIONS: 1}
