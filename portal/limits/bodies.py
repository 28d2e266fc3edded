"""The decision which bodies are read at all.

They are judged by headers alone: nothing of a refused body reaches memory or disk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from knowledge.reading.logs.elsewhere import LARGEST_LOG
from knowledge.reading.manifest import MOST_BYTES
from portal.accounts.authentication import bearer_of, token_of
from portal.accounts.errors import NotAllowed
from portal.accounts.models import Scope, User
from portal.accounts.permissions import needed_scope
from portal.clock import database_now
from portal.http.error_pages import RETRY_AFTER_S, answer
from portal.http.origins import is_from_here
from portal.serving.connection import BUFFERED_BYTES
from portal.turns import Shares
from scheduler.errors import OverQuota
from scheduler.services.files.parts import PART_BYTES
from scheduler.services.files.quotas import upload_hold
from scheduler.services.history import LARGEST

# Multipart headers and boundaries may add so much to the file itself.
ENVELOPE_BYTES = 100_000
UPLOADS_AT_ONCE = 2  # of one person: each holds one of the server's eight threads, however slow it is
uploads = Shares(UPLOADS_AT_ONCE)
BUSY = (
    "throttled",
    f"{UPLOADS_AT_ONCE} uploads of yours are under way",
    "Wait until one of them has ended, then send this again.",
)
View = TypeVar("View", bound=Callable[..., Any])
Next = Callable[[HttpRequest], HttpResponse]


@dataclass(frozen=True, slots=True)
class Files:
    """How much a view takes; `kept`: it stores them, which counts against a quota."""

    most: Callable[[], int]
    kept: bool


PART = Files(most=lambda: PART_BYTES, kept=False)  # its upload counts as a whole
TRAINING_DATA = Files(most=lambda: int(settings.MAX_UPLOAD_BYTES), kept=True)
SCRIPTS = Files(most=lambda: MOST_BYTES, kept=False)
LOGS = Files(most=lambda: LARGEST_LOG, kept=False)
HISTORIES = Files(most=lambda: LARGEST, kept=False)


def takes_files(files: Files) -> Callable[[View], View]:
    """Marks a view, or an APIView, whose bodies may be larger than a form's."""

    def mark(view: View) -> View:
        view.takes_files = files  # type: ignore[attr-defined]
        return view

    return mark


def announced_bytes(request: HttpRequest) -> int:
    """The body's length as Django reads it; 0 without one, as then nothing is read."""
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def body_middleware(get_response: Next) -> object:
    """Judge the request's body.

    It stands after the middleware that knows the session's user, and before the CSRF check, which
    reads forms.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if coding := _coding_of_body(request):
            return _coded(request, coding)
        # Nodes send much, and their interface looks at their token before it reads.
        if request.path.startswith("/agent/"):
            return get_response(request)
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            return answer(request, 411)
        size = announced_bytes(request)
        if size <= BUFFERED_BYTES:
            return get_response(request)
        return _large(request, size, get_response)

    return middleware


def _coding_of_body(request: HttpRequest) -> str:
    """The content coding of the body, such as gzip; empty if there is none."""
    codings = request.headers.get("Content-Encoding", "").replace(",", " ").split()
    has_body = announced_bytes(request) > 0 or "Transfer-Encoding" in request.headers
    return " ".join(one for one in codings if one.lower() != "identity")[:60] if has_body else ""


def _coded(request: HttpRequest, coding: str) -> HttpResponse:
    """Refuse a packed body (RFC 9110, 15.5.16).

    Its size would be known only after it was unpacked.
    """
    title = f"The body is encoded ({coding}), which is not taken here"
    remedy = "Send it as it is, without Content-Encoding."
    response = answer(request, 415, ("unsupported_media_type", title, remedy))
    response["Accept-Encoding"] = "identity"
    return response


def _large(request: HttpRequest, size: int, get_response: Next) -> HttpResponse:
    """Judge a request whose body is too large to be buffered.

    A thread waits for such a body, so strangers may not send one.
    """
    files = _files_of(request.path_info)
    if size > (files.most() + ENVELOPE_BYTES if files else settings.MAX_FORM_BYTES):
        return answer(request, 413)
    try:
        user, may_write = _sender(request)
    except NotAllowed:  # the token may not be used from there
        return answer(request, 403)
    if user is None:
        return _unauthorised(request)
    with uploads.take(user.pk) as free:
        if not free:
            return _busy(request)
        if files is None or size <= settings.MAX_FORM_BYTES:
            return get_response(request)
        return _upload(request, user, size, files, get_response) if may_write else answer(request, 403)


def _busy(request: HttpRequest) -> HttpResponse:
    response = answer(request, 429, BUSY)
    response["Retry-After"] = RETRY_AFTER_S
    return response


def _upload(request: HttpRequest, user: User, size: int, files: Files, get_response: Next) -> HttpResponse:
    try:
        with upload_hold(owner=user, size=size, now=database_now()) if files.kept else nullcontext():
            return get_response(request)
    except OverQuota as over:
        return answer(request, 413, ("over_quota", "Your storage quota is used up", str(over)))
    finally:
        _remove_part(request)


def _remove_part(request: HttpRequest) -> None:
    """Close the partial upload of a lost connection.

    Django closes files that are whole, and leaves this one to the collector.
    """
    for handler in request.upload_handlers:
        part = getattr(handler, "file", None)
        if part is not None:
            part.close()


def _files_of(path: str) -> Files | None:
    try:
        view = resolve(path).func
    except Resolver404:
        return None
    of_action = getattr(view, "initkwargs", {}).get("takes_files")
    found = of_action or getattr(getattr(view, "cls", view), "takes_files", None)
    return found if isinstance(found, Files) else None


def _sender(request: HttpRequest) -> tuple[User | None, bool]:
    """Return the sender by token or session, and whether they may send.

    A token allows it by its scope, a session if the request is from a page of this portal.
    """
    plain = bearer_of(request)
    if plain is not None:
        token = token_of(plain, request)
        needed = needed_scope(request.method, request.path)
        return (token.owner, Scope(token.scope).includes(needed)) if token else (None, False)
    user = request.user
    return (user, is_from_here(request)) if isinstance(user, User) else (None, False)


def _unauthorised(request: HttpRequest) -> HttpResponse:
    response = answer(request, 401)
    response["WWW-Authenticate"] = 'Bearer realm="foretune"'
    return response
