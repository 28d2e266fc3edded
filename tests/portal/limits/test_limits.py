"""Limits that all web processes share, with and without Redis."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis as client
from django.core import cache
from rest_framework.settings import api_settings
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from portal.configuration.caches import ANSWER_WITHIN_S, caches, redis_address
from portal.limits import counters
from tests.harness.servers import NotInstalled, Redis


@pytest.fixture
def redis(settings: Any) -> Iterator[Redis]:
    """A server of its own, counting for the portal."""
    try:
        server = Redis()
    except NotInstalled as missing:
        pytest.skip(f"no {missing} here")
    settings.CACHES = caches(server.url)
    yield server
    server.popen.send_signal(signal.SIGCONT)
    server.remove()
    settings.CACHES = caches("")


@pytest.fixture(autouse=True)
def _two_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "away_until", 0.0)
    rates = {**api_settings.DEFAULT_THROTTLE_RATES, "user": "2/min"}
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", rates)


def test_web_processes_count_together(api: APIClient, redis: Redis, settings: Any) -> None:
    assert [api.get("/api/me/").status_code for _ in range(2)] == [200, 200]
    settings.CACHES = caches(redis.url)  # as another process would see it: new connections, no memory
    assert api.get("/api/me/").status_code == 429
    keys = client.Redis.from_url(redis.url).keys()
    assert keys, "nothing was counted in Redis"
    assert all(key.startswith(b"foretune:") for key in keys)


def test_a_dead_redis_costs_the_limit_and_nothing_else(
    api: APIClient, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    assert api.get("/api/me/").status_code == 200
    redis.popen.kill()
    redis.popen.wait()
    began = time.monotonic()
    assert [api.get("/api/me/").status_code for _ in range(5)] == [200] * 5
    assert time.monotonic() - began < 5 * ANSWER_WITHIN_S
    assert caplog.text.count("Redis does not answer") == 1


def test_a_hanging_redis_delays_one_request_by_its_time_out(
    api: APIClient, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    assert api.get("/api/me/").status_code == 200
    redis.popen.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    assert [api.get("/api/me/").status_code for _ in range(5)] == [200] * 5
    assert time.monotonic() - began < 5 * ANSWER_WITHIN_S
    assert caplog.text.count("Redis does not answer") == 1, "the others know of it"


def test_counting_goes_on_when_redis_is_back(
    api: APIClient, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.popen.send_signal(signal.SIGSTOP)
    assert api.get("/api/me/").status_code == 200
    redis.popen.send_signal(signal.SIGCONT)
    monkeypatch.setattr(counters, "away_until", time.monotonic())  # its pause has passed
    assert [api.get("/api/me/").status_code for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize(
    ("broker", "expected"),
    [
        ("redis://:word@host:6379/2", "redis://:word@host:6379/2"),
        ("rediss://host/0", "rediss://host/0"),
        ("redis+socket:///tmp/broker.sock?virtual_host=0", "unix:///tmp/broker.sock?db=0"),
        ("filesystem://", ""),
        ("", ""),
    ],
)
def test_the_broker_also_counts_where_it_is_a_redis(broker: str, expected: str) -> None:
    assert redis_address(broker) == expected


def test_nothing_read_from_redis_is_ever_unpickled(redis: Redis) -> None:
    cache.caches["counters"].set("seen", [1.5])
    assert client.Redis.from_url(redis.url).get("foretune:1:seen") == b"[1.5]"
