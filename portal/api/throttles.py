"""Rate limits that all web processes count together, and that never keep anybody out by failing."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, ClassVar, cast

from django.core.cache import BaseCache, caches
from django.utils.connection import ConnectionProxy
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import AnonRateThrottle, SimpleRateThrottle, UserRateThrottle

if TYPE_CHECKING:
    from rest_framework.views import APIView  # it imports this module while it is being made

log = logging.getLogger("portal.throttles")
# While Redis hangs, each attempt costs its time-out; one request in so many seconds pays it.
LEAVE_ALONE_S = 5.0


class FailOpen(SimpleRateThrottle):
    """Lets requests through while the counters cannot be reached: a limit is no reason to be down."""

    cache = cast(BaseCache, ConnectionProxy(caches, "counters"))
    _away_until: ClassVar[float] = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        if time.monotonic() < FailOpen._away_until:
            return True
        try:
            return super().allow_request(request, view)
        except RedisError as away:
            FailOpen._away_until = time.monotonic() + LEAVE_ALONE_S
            log.warning("requests are not counted: Redis does not answer (%s)", type(away).__name__)
            return True


class UserThrottle(FailOpen, UserRateThrottle):
    """RATE_LIMIT for each person."""


class AnonThrottle(FailOpen, AnonRateThrottle):
    """A low limit for each address that nobody signed in from."""
