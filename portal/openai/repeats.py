"""Creations of clients that ask again by themselves when an answer is lost.

They send no Idempotency-Key, but count their repetitions.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Model

from portal.accounts.models import ApiToken
from portal.accounts.requests import ApiRequest
from portal.api.common import idempotent
from scheduler.services.idempotency import Creation, once_for_retries

COUNT, TIMEOUT = "x-stainless-retry-count", "x-stainless-read-timeout"
WINDOW = timedelta(minutes=10)
USUAL_TIMEOUT_S, LONGEST_TIMEOUT_S = 600, 3600
Made = TypeVar("Made", bound=Model)


def create(
    request: ApiRequest,
    *,
    now: datetime,
    make: Callable[[Creation], Made],
    load: Callable[[str], Made],
    body_digest: str | None = None,
) -> Made:
    """The object: made now, or by the request that this one repeats.

    now: when the request came.
    """
    count, token = request.headers.get(COUNT, ""), request.auth
    if idempotent.HEADER in request.headers or not count.isdecimal() or not isinstance(token, ApiToken):
        return idempotent.create(request, make=make, load=load, body_digest=body_digest)[0]
    return once_for_retries(
        owner=request.user,
        route=f"POST {request.path}",
        token=token.pk,
        body_digest=body_digest or idempotent.digest_of_body(request.data),
        retry=int(count[:3]) > 0,
        window=window(request),
        now=now,
        create=make,
        load=load,
    )[0]


def window(request: ApiRequest) -> timedelta:
    """How long ago the first request may have come.

    A client waits for an answer for as long as it says before it asks again.
    """
    told, count = request.headers.get(TIMEOUT, ""), int(request.headers[COUNT][:3])
    timeout_s = float(told) if told.replace(".", "", 1).isdecimal() else USUAL_TIMEOUT_S
    return WINDOW + count * timedelta(seconds=min(timeout_s, LONGEST_TIMEOUT_S))
