"""Middleware for every request.

Logs and answers share a request id, and the size of a request is limited.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from portal import disk, hints, turns
from portal.accounts import time_zones
from portal.http.error_pages import answer
from portal.limits.guesses import network_of
from portal.logs import request_id
from portal.serving import queued
from portal.serving.program_errors import is_openai
from portal.serving.refusals import PROGRAM_PATHS
from trainer import __version__

log = logging.getLogger("portal.requests")
_USABLE = re.compile(r"[\w-]{1,64}\Z", re.ASCII)
# Polling pages and agents would drown what changed something or went wrong.
ROUTINE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ROUTINE_PATHS = frozenset({"/agent/v1/sync"})
VERSIONED_PATHS = tuple(path for path in PROGRAM_PATHS if path != "/agent/")  # an agent's messages tell it
# Programs are told times in the portal's zone, for every user; probes must not hang on a session's database.
ZONELESS_PATHS = (*PROGRAM_PATHS, "/healthz", "/readyz", "/beatz", "/metrics")
WITHOUT_TLS = ("https_required", "The portal answers programs by https alone", "Use its https:// address.")


def request_id_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Take the caller's X-Request-ID or make one.

    Logs requests that changed something or failed.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        name = given if _USABLE.match(given) else uuid.uuid4().hex
        mark = request_id.set(name)
        begun = time.monotonic()
        try:
            response = get_response(request)
            response["X-Request-ID"] = name
            routine = request.method in ROUTINE_METHODS or request.path in ROUTINE_PATHS
            if not routine or response.status_code >= 500:
                spent = round((time.monotonic() - begun) * 1000)
                log.info(
                    "%s %s",
                    request.method,
                    request.path,
                    extra={"status": response.status_code, "duration_ms": spent},
                )
            return response
        finally:
            request_id.reset(mark)

    return middleware


def version_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Tell programs the release that answers, whatever the answer."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if request.path.startswith(VERSIONED_PATHS):
            response["Foretune-Version"] = __version__
        return response

    return middleware


def client_address_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Set REMOTE_ADDR behind our own proxies to the address the outermost one saw.

    Otherwise all people would share the proxy's address, and with it their limits and lockouts.
    Anything further left in X-Forwarded-For came with the request and may be invented.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        forwarded = request.headers.get("X-Forwarded-For", "").split(",")
        if 0 < settings.TRUSTED_PROXIES <= len(forwarded):
            address = _without_port(forwarded[-settings.TRUSTED_PROXIES].strip())
            request.META["REMOTE_ADDR"] = address or request.META.get("REMOTE_ADDR", "")
        mark = turns.client_address.set(network_of(str(request.META.get("REMOTE_ADDR", ""))))
        try:
            return get_response(request)
        finally:
            turns.client_address.reset(mark)

    return middleware


def _without_port(text: str) -> str:
    """An address as some proxies write it: `192.0.2.7:443`, `[2001:db8::7]:443`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, _, port = text.partition(":")
    return host if port.isdecimal() else text


def plain_address_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Answer 404 for an address with NUL in it.

    Such an address has no page, and PostgreSQL would fail on the query.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        return answer(request, 404) if "\x00" in request.path else get_response(request)

    return middleware


def form_address_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Answer 405 with a page instead of a blank one.

    A person sees it after loading a form's address again, or when signing in leads there.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code != 405 or response.content:
            return response
        page = answer(request, 405)
        page["Allow"] = response["Allow"]
        return page

    return middleware


def signed_out_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Answer 401 for a part of a page whose reader was signed out.

    A sign-in page does not belong inside another page.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        to_sign_in = response.get("Location", "").startswith(settings.LOGIN_URL)
        if to_sign_in and request.headers.get("HX-Request") == "true":
            return HttpResponse(status=401)
        return response

    return middleware


def tls_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Refuse programs without TLS, where pages are redirected.

    A client repeats a redirected POST as a GET, and takes the answer for its new object.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        is_open = settings.SECURE_SSL_REDIRECT and not request.is_secure()
        if is_open and (request.path.startswith(PROGRAM_PATHS) or is_openai(request.path)):
            return answer(request, 403, WITHOUT_TLS)
        return get_response(request)

    return middleware


def api_key_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Take the header `api-key` of Azure's clients for a bearer token, where they ask."""

    def middleware(request: HttpRequest) -> HttpResponse:
        key = request.headers.get("api-key")
        if key and "Authorization" not in request.headers and is_openai(request.path):
            request.META["HTTP_AUTHORIZATION"] = f"Bearer {key}"
            vars(request).pop("headers", None)  # they were cached
        return get_response(request)

    return middleware


def cache_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Forbid storing answers on their way or in the browser.

    The view, or WhiteNoise, may say otherwise.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.setdefault("Cache-Control", "private, no-store")
        return response

    return middleware


def full_disk_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Give a full disk's reserve away before a request that needs it, like a sign-in."""

    def middleware(request: HttpRequest) -> HttpResponse:
        disk.relieve()
        return get_response(request)

    return middleware


def overload_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Answer 503 for requests that waited long for a thread.

    The client is about to give up, and other requests wait behind it.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        late = queued.waited_s.get() > queued.LONGEST_S
        return answer(request, 503) if late else get_response(request)

    return middleware


def hint_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """A request that changes many rows wakes the workers once."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with hints.merged():
            return get_response(request)

    return middleware


def time_zone_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Pages tell and read times in the zone of the person who looks at them."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path.startswith(ZONELESS_PATHS):
            return get_response(request)
        own = getattr(request.user, "time_zone", "")
        with timezone.override(time_zones.zone_for(own, request.COOKIES.get(time_zones.COOKIE, ""))):
            return get_response(request)

    return middleware
