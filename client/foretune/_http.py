"""Requests and answers: what is sent, what is tried again, what an answer means."""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import anyio.to_thread
import httpx2

from . import __version__
from ._errors import ApiError, NotConfigured, refusal

log = logging.getLogger("foretune")

TRIES = 5
TIMEOUT = httpx2.Timeout(60.0, connect=5.0)
FIRST_DELAY_S, LONGEST_DELAY_S, LONGEST_ASKED_S = 0.5, 8.0, 120.0
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})
PASSING = frozenset({408, 429, 502, 503, 504})
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def options_of_connection(url: str, token: str) -> dict[str, Any]:
    """The arguments of httpx2's clients, sync and async. Raises NotConfigured."""
    base = base_url(url)
    if not token or not token.isascii() or not token.isprintable():
        raise NotConfigured(
            "No API token: `foretune login` gets one, or FORETUNE_TOKEN holds one of the page API tokens."
        )
    return {
        "base_url": base,
        "headers": {"Authorization": f"Bearer {token}", "User-Agent": f"foretune/{__version__}"},
        "timeout": TIMEOUT,
        # A proxy for the internet must not see, or swallow, requests to this machine.
        "trust_env": base.host not in LOCAL,
    }


def base_url(given: str) -> httpx2.URL:
    if not given:
        raise NotConfigured("No portal: `foretune login URL`, or FORETUNE_URL names its address.")
    try:
        url = httpx2.URL(given)
    except httpx2.InvalidURL as wrong:
        raise NotConfigured(f"The portal's address is none: {wrong}.") from wrong
    if url.scheme not in ("http", "https") or not url.host:
        raise NotConfigured("The portal's address must begin with https:// or http:// and name a host.")
    return url


def address(path: str) -> str:
    """A path below /api/, written with or without that and the slash before."""
    if path.startswith(("/v1/", "v1/")):
        return f"/{path.lstrip('/')}"
    return f"/api/{path.removeprefix('/').removeprefix('api/')}"


def new_key() -> str:
    """A new Idempotency-Key.

    The portal makes one object for it, however often it is asked.
    """
    return f"foretune-{uuid.uuid4().hex}"


def may_repeat(method: str, *, key: str, harmless: bool) -> bool:
    """Does the same request, sent twice, do no more than sent once?"""
    return method in REPEATABLE or bool(key) or harmless


def passes(error: ApiError) -> bool:
    """Is it worth asking again?"""
    return error.status in PASSING or error.code == "key_in_use"


def delay_s(tried: int, answer: httpx2.Response | None) -> float:
    """How long to wait before the next try: as the portal asks, else longer each time."""
    asked = answer.headers.get("Retry-After", "") if answer is not None else ""
    if asked.isdecimal():
        return min(float(asked), LONGEST_ASKED_S)
    longest: float = FIRST_DELAY_S * 2 ** (tried - 1)
    return min(longest, LONGEST_DELAY_S) * random.uniform(0.5, 1.0)


def refused(response: httpx2.Response) -> ApiError:
    """The exception of an answer whose body has been read."""
    try:
        body: object = response.json()
    except ValueError:
        body = response.text[:200]
    return refusal(
        status=response.status_code, body=body, request_id=response.headers.get("X-Request-ID", "")
    )


def content_of(response: httpx2.Response) -> Any:
    """Its JSON; None where it has no body. Raises ApiError."""
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise ApiError(
            "The answer is no JSON: is this the address of a portal?", status=response.status_code
        ) from None


def query_of(given: Mapping[str, Any]) -> httpx2.QueryParams:
    """Query parameters: None is left out, lists repeat, mappings become `name[key]`."""
    pairs: list[tuple[str, str]] = []
    for name, value in given.items():
        if isinstance(value, Mapping):
            pairs.extend((f"{name}[{key}]", str(one)) for key, one in value.items())
        elif isinstance(value, (list, tuple, set, frozenset)):
            pairs.extend((name, _text(one)) for one in value)
        elif value is not None:
            pairs.append((name, _text(value)))
    return httpx2.QueryParams([*pairs])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


async def async_call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call what reads files or counts digests beside the event loop."""
    return await anyio.to_thread.run_sync(function, *arguments)


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it: what `async_call` is without an event loop."""
    return function(*arguments)
