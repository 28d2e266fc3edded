"""A broker that is away costs latency and nothing else (F5, F6)."""

from __future__ import annotations

import functools
import time

import pytest

from scheduler import hints
from scheduler.loop.tick import tick
from tests.harness import world


@pytest.mark.django_db(transaction=True)
def test_requests_succeed_while_the_broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "_quiet_until", 0.0)
    monkeypatch.setattr(hints.settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {"max_retries": 0})
    away = functools.partial(hints.current_app.connection_for_write, "redis://127.0.0.1:1/0")
    monkeypatch.setattr(hints.current_app, "connection_for_write", away)
    world.fake_node()
    world.job()
    assert hints._quiet_until > time.monotonic()
    assert tick().started == 1
