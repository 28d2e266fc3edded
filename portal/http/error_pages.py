"""Answers when no view answered.

They are JSON for programs and a page for people, never a trace.
"""

from __future__ import annotations

import sys

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from portal import disk
from portal.accounts.errors import TooBusy
from portal.http.entered import again
from portal.serving.program_errors import headers_at, is_openai, program_error, status_at
from portal.serving.refusals import PROGRAM_PATHS
from scheduler.errors import StorageFull

RETRY_AFTER_S = "5"

TEXTS = {
    400: ("bad_request", "This request cannot be read", "Go back and try again."),
    401: ("not_authenticated", "You are not signed in", "Sign in, then send it again."),
    403: ("forbidden", "This is not allowed", "Your account may not do this; an administrator can allow it."),
    404: ("not_found", "Page not found", "It may have moved, or it belongs to someone else."),
    405: (
        "method_not_allowed",
        "This address does not take this kind of request",
        "Go back to the page and use its links and buttons.",
    ),
    411: (
        "length_required",
        "The length of the request is missing",
        "Send it with a Content-Length header.",
    ),
    413: ("too_large", "The request is too large", "Send a smaller file, or ask for a higher limit."),
    429: (
        "throttled",
        "Too many wrong passwords",
        "This name is locked for your address for 15 minutes; try again after that.",
    ),
    500: (
        "internal_error",
        "Something went wrong on our side",
        "The error has been recorded. Please try again.",
    ),
    503: ("unavailable", "The portal is busy right now", "Nothing is lost. Please try again shortly."),
    507: (
        "storage_full",
        "A disk of the portal is full",
        "Nothing was stored. Try again later, or tell an administrator.",
    ),
}


UNKNOWN_HOST = (
    "unknown_host",
    "The portal is not known by this name",
    "Use the address that an administrator told you; they add names to ALLOWED_HOSTS.",
)
OLD_FORM = ("forbidden", "This form has expired", "Reload its page and submit it again.")


def answer(request: HttpRequest, status: int, text: tuple[str, str, str] | None = None) -> HttpResponse:
    """The error page or JSON object of that status."""
    code, title, remedy = text or TEXTS[status]
    if request.path.startswith(PROGRAM_PATHS) or is_openai(request.path):
        status = status_at(request.path, status, code)
        body = program_error(request.path, status, code, f"{title}. {remedy}")
        headers = headers_at(request.path, code)
        response: HttpResponse = JsonResponse(body, status=status, headers=dict(headers))
    else:
        words = {"status": status, "title": title, "remedy": remedy}
        # A refusal shows the reader's navigation. A fault has no request in its context, as the processors
        # may need the very database that is away.
        page = render_to_string("error.html", words, request if status < 500 else None)
        response = HttpResponse(page, status=status)
    if status in (503, 507):
        response["Retry-After"] = RETRY_AFTER_S
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(request, 400, UNKNOWN_HOST if isinstance(exception, DisallowedHost) else None)


def forbidden(request: HttpRequest, exception: Exception | None = None, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """Answer 403; a reason says that the CSRF token is missing or old.

    What was entered can then be sent again.
    """
    if not reason or request.path.startswith(PROGRAM_PATHS):
        return answer(request, 403, OLD_FORM if reason else None)
    return again(request, status=403) or answer(request, 403, OLD_FORM)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return answer(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a server error with 503, 507 or 500.

    503 means that the database is away or too many people sign in, 507 that the disk is full, and
    500 that the mistake is ours.
    """
    failed = sys.exc_info()[1]
    away = isinstance(failed, OperationalError | InterfaceError | TooBusy)
    if isinstance(failed, StorageFull) or disk.is_full_disk(failed) or (away and disk.disk().is_full):
        return full_disk(request)
    return answer(request, 503 if away else 500)


def full_disk(request: HttpRequest) -> HttpResponse:
    """Answer 507 and name the disk: the portal's if that is the full one."""
    disk.relieve()
    now = disk.disk()
    if not now.is_full:
        return answer(request, 507)
    title = f"The disk of the portal is full: {now.room}"
    remedy = "New work is refused, running trainings go on. Try again later, or tell an administrator."
    return answer(request, 507, ("storage_full", title, remedy))


def locked_out(request: HttpRequest, *_: object) -> HttpResponse:
    """Answer 429 after too many wrong passwords (settings.AXES_LOCKOUT_CALLABLE)."""
    response = answer(request, 429)
    response["Retry-After"] = str(int(settings.AXES_COOLOFF_TIME.total_seconds()))
    return response
