"""Rate limits that all web processes count together.

If the counters fail, nobody is kept out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from django.core.cache import BaseCache, caches
from django.utils.connection import ConnectionProxy
from rest_framework.request import Request
from rest_framework.throttling import AnonRateThrottle, SimpleRateThrottle, UserRateThrottle

from portal.limits import counters

if TYPE_CHECKING:
    from rest_framework.views import APIView  # it imports this module while it is being made


class FailOpen(SimpleRateThrottle):
    """A throttle that lets requests through while the counters cannot be reached.

    A limit is no reason to be down.
    """

    cache = cast(BaseCache, ConnectionProxy(caches, "counters"))

    def allow_request(self, request: Request, view: APIView) -> bool:
        ask = partial(super().allow_request, request, view)
        return counters.unless_away(ask, True)


class UserThrottle(FailOpen, UserRateThrottle):
    """RATE_LIMIT for each person."""


class AnonThrottle(FailOpen, AnonRateThrottle):
    """A low limit for each address that nobody signed in from."""
