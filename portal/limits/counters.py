"""Counts that all web processes share, and that keep nobody out by failing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.core.cache import caches
from redis.exceptions import RedisError

log = logging.getLogger("portal.throttles")
# While Redis hangs, each attempt costs its time-out; one request in so many seconds pays it.
LEAVE_ALONE_S = 5.0
Value = TypeVar("Value")
away_until = 0.0


def unless_away(ask: Callable[[], Value], otherwise: Value) -> Value:
    """Return the answer of `ask` from the counters.

    Returns `otherwise` while they cannot be reached.
    """
    global away_until
    if time.monotonic() < away_until:
        return otherwise
    try:
        return ask()
    except RedisError as away:
        away_until = time.monotonic() + LEAVE_ALONE_S
        log.warning("requests are not counted: Redis does not answer (%s)", type(away).__name__)
        return otherwise


def count(name: str) -> int:
    """How often the name was counted in its window; 0 while nobody can tell."""
    return unless_away(lambda: int(caches["counters"].get(name, 0)), 0)


def count_up(name: str, window_s: int) -> int:
    """Count the name once more; its window begins with the first time."""

    def add() -> int:
        cache = caches["counters"]
        cache.add(name, 0, window_s)
        try:
            return int(cache.incr(name))
        except ValueError:  # its window ended just now
            return 1

    return unless_away(add, 0)
