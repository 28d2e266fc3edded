"""A broker that is away costs latency and nothing else (F5, F6)."""

from __future__ import annotations

import time

import pytest

from scheduler import hints
from scheduler.loop.tick import tick
from tests.harness import world


@pytest.mark.django_db(transaction=True)
def test_requests_succeed_while_the_broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no broker in these tests: each submission sends its hint into the void."""
    monkeypatch.setattr(hints, "_quiet_until", 0.0)
    world.fake_node()
    world.job()
    assert hints._quiet_until > time.monotonic()
    assert tick().started == 1
