"""Requests in a time, counted by all web processes together.

A window begins with its first request. Costs are counted in tenths of a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.core.cache import caches

WHOLE = 10  # tenths


@dataclass(frozen=True, slots=True)
class Policy:
    """So many requests of each, in a window of so many seconds."""

    name: str
    requests: int
    window_s: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent in a window, whose count has this key, and which ends soon."""

    policy: Policy
    key: str
    tenths: int
    ends_in_s: int

    @property
    def is_over(self) -> bool:
        return self.tenths > self.policy.requests * WHOLE

    @property
    def left(self) -> int:
        """Whole requests."""
        return max(0, self.policy.requests - -(-self.tenths // WHOLE))


def spend(policy: Policy, whose: int, tenths: int, now_s: float) -> Spent:
    """Count a request. Raises RedisError.

    now_s: of a clock that all web processes read.
    """
    cache = caches["counters"]
    window = f"rate:{policy.name}:{whose}"
    begun_s = cache.get(window)
    if begun_s is None or not 0 <= now_s - begun_s < policy.window_s:
        begun_s = now_s
        cache.set(window, begun_s, policy.window_s)
    key = f"{window}:{begun_s}"
    try:
        spent = cache.incr(key, tenths)
    except ValueError:  # the first one
        cache.add(key, 0, policy.window_s)
        spent = cache.incr(key, tenths)
    return Spent(policy, key, int(spent), max(1, round(begun_s + policy.window_s - now_s)))


def give_back(spent: Spent, tenths: int) -> Spent:
    """Count a request for so much less than it was taken for at first, or for more.

    Raises RedisError.
    """
    try:
        return replace(spent, tenths=int(caches["counters"].incr(spent.key, -tenths)))
    except ValueError:  # its window has ended
        return spent


def headers(limits: Iterable[Spent]) -> dict[str, str]:
    """The limits and what is left of them (draft-ietf-httpapi-ratelimit-headers-10)."""
    shown = list(limits)
    policies = [f'"{one.policy.name}";q={one.policy.requests};w={one.policy.window_s}' for one in shown]
    left = [f'"{one.policy.name}";r={one.left};t={one.ends_in_s}' for one in shown]
    return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(left)} if shown else {}
