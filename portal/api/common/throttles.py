"""Rate limits that all web processes count together.

If the counters fail, nobody is kept out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from django.core.cache import BaseCache, caches
from django.http import HttpRequest, HttpResponse
from django.utils.connection import ConnectionProxy
from rest_framework.request import Request
from rest_framework.throttling import AnonRateThrottle, SimpleRateThrottle

from portal.accounts.models import ApiToken, User
from portal.limits import counters, rates
from portal.limits.rates import WHOLE, Policy, Spent
from portal.serving.parking import has_waited

if TYPE_CHECKING:
    from rest_framework.views import APIView  # it imports this module while it is being made

CHEAP = 1  # tenths that a wait costs, and an answer that nothing has changed


def _at_first(request: HttpRequest) -> int:
    """The tenths that a request is taken for before it is served."""
    return CHEAP if "wait_s" in request.GET else WHOLE


def _cost(response: HttpResponse) -> int:
    """The tenths that an answer has cost."""
    return CHEAP if response.status_code == 304 or has_waited() else WHOLE


class CountedThrottle(SimpleRateThrottle):
    """A rate in windows, which the answer tells the asker.

    It lets requests through while the counters cannot be reached: a limit is no reason to be down.
    """

    name: str
    spent: Spent | None = None

    def whose(self, request: HttpRequest) -> int | None:
        """The key of whose requests are counted; None: nobody's."""
        raise NotImplementedError

    def allow_request(self, request: Request, view: APIView) -> bool:
        self.spent = self.count(request._request, _at_first(request._request))
        return self.spent is None or not self.spent.is_over

    def wait(self) -> float | None:
        return self.spent.ends_in_s if self.spent else None

    def count(self, request: HttpRequest, tenths: int) -> Spent | None:
        """Count a request, which keeps what is told of it.

        None for nobody, and while the counters are away.
        """
        whose = self.whose(request)
        requests, window_s = self.parse_rate(self.rate)
        if whose is None or requests is None or window_s is None:
            return None
        policy = Policy(self.name, requests, window_s)
        ask = partial(rates.spend, policy, whose, tenths, self.timer())
        spent: Spent | None = counters.unless_away(ask, None)
        if spent is not None:
            told(request)[self.name] = spent
        return spent


class PersonThrottle(CountedThrottle):
    """RATE_LIMIT for each person, whatever they ask with."""

    scope = "user"
    name = "person"

    def whose(self, request: HttpRequest) -> int | None:
        return request.user.pk if isinstance(request.user, User) else None


class TokenThrottle(CountedThrottle):
    """TOKEN_RATE_LIMIT for each token, so that one program leaves room for others."""

    scope = "token"
    name = "token"

    def whose(self, request: HttpRequest) -> int | None:
        token = token_of(request)
        return token.pk if token else None


class AnonThrottle(AnonRateThrottle):
    """A low limit for each address that nobody signed in from."""

    cache = cast(BaseCache, ConnectionProxy(caches, "counters"))

    def allow_request(self, request: Request, view: APIView) -> bool:
        return counters.unless_away(partial(super().allow_request, request, view), True)


def token_of(request: HttpRequest) -> ApiToken | None:
    """The token with which a view found the asker."""
    token = getattr(request, "auth", None)
    return token if isinstance(token, ApiToken) else None


def told(request: HttpRequest) -> dict[str, Spent]:
    """What the answer tells of limits, by their names."""
    if not hasattr(request, "rate_limits"):
        request.rate_limits = {}  # type: ignore[attr-defined]
    limits: dict[str, Spent] = request.rate_limits  # type: ignore[attr-defined]
    return limits


def rate_limit_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Tell each token what is left of its limits.

    What an answer has cost is known once it is there.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        limits = told(request)
        if limits and (surplus := _at_first(request) - _cost(response)):
            for name, spent in limits.items():
                take = partial(rates.give_back, spent, surplus)
                limits[name] = counters.unless_away(take, spent)
        if token_of(request) is None:
            return response
        if not limits:  # it was refused before it was counted
            PersonThrottle().count(request, WHOLE)
            TokenThrottle().count(request, WHOLE)
        for name, value in rates.headers(limits.values()).items():
            response[name] = value
        return response

    return middleware
