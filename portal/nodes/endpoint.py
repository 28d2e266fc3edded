"""Code shared by every address for node agents.

It handles the token, the body, and errors as JSON.
"""

from __future__ import annotations

import base64
import functools
import logging
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from portal.accounts.services import audit_refusal
from portal.clock import database_now
from scheduler.errors import (
    BadReport,
    ContentLost,
    FileTooLarge,
    NodeRefused,
    NotFound,
    OldProtocol,
    SchedulerError,
    StaleAttempt,
    StorageFull,
    Superseded,
)
from scheduler.models import Node
from scheduler.selectors.nodes import may_join, node_by_token
from trainer import strict_json
from trainer.protocol import SUPPORTED_PROTOCOLS, ProtocolError, TooMany

log = logging.getLogger(__name__)
View = Callable[..., HttpResponseBase]
STATUS: dict[type[SchedulerError], tuple[int, str]] = {
    NodeRefused: (401, "node_refused"),
    NotFound: (404, "not_found"),
    ContentLost: (410, "content_lost"),
    StaleAttempt: (409, "stale_attempt"),
    Superseded: (409, "superseded"),
    BadReport: (400, "bad_report"),
    FileTooLarge: (413, "too_large"),
    StorageFull: (507, "storage_full"),
    OldProtocol: (426, "old_protocol"),
}


class BadBody(Exception):
    """A body that is no JSON object."""


def error(status: int, code: str, message: str, **more: Any) -> JsonResponse:
    """The one shape of errors."""
    return JsonResponse({"error": {"code": code, "message": message, **more}}, status=status)


def endpoint(method: str) -> Callable[[View], View]:
    """Make a view for agents: one method, no cookies, every known error as JSON.

    HEAD is taken beside GET.
    """

    def wrap(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method != method and (request.method, method) != ("HEAD", "GET"):
                return error(405, "method_not_allowed", f"Use {method} here.")
            try:
                return view(request, *args, **kwargs)
            except BadBody as wrong:
                return error(400, "bad_body", str(wrong))
            except TooMany as flood:
                return error(413, "too_much", str(flood), field=flood.path)
            except ProtocolError as wrong:
                return error(400, "bad_message", str(wrong), field=wrong.path)
            except OldProtocol as old:
                return error(426, "old_protocol", str(old), supported=list(SUPPORTED_PROTOCOLS))
            except SchedulerError as known:
                status, code = STATUS.get(type(known), (400, "refused"))
                return error(status, code, str(known))

        return answer

    return wrap


def for_node(view: View) -> View:
    """The view gets the node that the bearer token belongs to; 401 without one."""

    @functools.wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        node = _node(request)
        if node is None:
            audit_refusal(
                action="node token refused",
                now=database_now(),
                address=address_of(request),
                data={"path": request.path},
            )
            response: HttpResponse = error(
                401, "node_refused", "The node token is not valid; enrol the node."
            )
            response["WWW-Authenticate"] = "Bearer"
            return response
        return view(request, node, *args, **kwargs)

    return answer


def for_joining(view: View) -> View:
    """Require a join token, as bearer or as pip sends it, a password; 401 without.

    A download does not use the token up: the enrolment comes later.
    """

    @functools.wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if may_join(_join_token(request), database_now()):
            return view(request, *args, **kwargs)
        text = "The join token is unknown, expired or used up; ask an administrator for a new one."
        response: HttpResponse = error(401, "node_refused", text)
        response["WWW-Authenticate"] = 'Basic realm="Foretune", charset="UTF-8"'
        return response

    return answer


def _join_token(request: HttpRequest) -> str:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _node(request: HttpRequest) -> Node | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return node_by_token(token) if scheme.lower() == "bearer" and token.startswith("fnode-") else None


def body_of(request: HttpRequest, *, largest: int) -> Any:
    """Return the JSON body of at most `largest` bytes.

    Raises FileTooLarge, or BadBody if it is not strict JSON.
    """
    length = int(request.headers.get("Content-Length") or 0)
    if length > largest:
        raise FileTooLarge("The message is too large; send fewer reports at a time.")
    try:
        return strict_json.loads(request.body)
    except strict_json.Excess as flood:
        raise FileTooLarge(f"The message {flood}; send fewer reports at a time.") from flood
    except strict_json.RefusedJson as wrong:
        raise BadBody(f"The body {wrong}.") from wrong
    except ValueError as wrong:
        raise BadBody(f"The body is not valid JSON: {str(wrong)[:200]}") from wrong


def address_of(request: HttpRequest) -> str:
    """Where the request came from."""
    return str(request.META.get("REMOTE_ADDR", ""))
