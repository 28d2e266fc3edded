"""Refusals of requests that reach no thread.

They are JSON for programs where the path is known, else a page.
"""

from __future__ import annotations

import html
import json
from http import HTTPStatus

from portal.serving.program_errors import is_openai, program_error

# Paths whose answers are JSON, errors included.
PROGRAM_PATHS = ("/api/", "/v1/", "/openai/", "/oauth/", "/agent/")

# status -> (code, what is wrong, what to do)
TEXTS = {
    400: ("bad_request", "This request is not HTTP as it should be", "Check its first line and headers."),
    403: ("forbidden", "This is not allowed", "Send the request through the portal's own proxy."),
    411: ("length_required", "The length of the request is missing", "Send it with a Content-Length header."),
    414: ("uri_too_long", "The address is too long", "Ask for less at once, or shorten its parameters."),
    417: ("expectation_failed", "This expectation is unknown", "Leave out the Expect header."),
    431: ("headers_too_large", "The headers are too large", "Send fewer or shorter headers and cookies."),
    500: ("internal_error", "Something went wrong on our side", "Please try again."),
    501: ("not_implemented", "This transfer coding is unknown", "Send the body as it is, with its length."),
}


def target_of(head: bytes) -> str:
    """Return the path that the first line of a request asks for.

    It is cut where the line has not arrived as a whole.
    """
    first = head.split(b"\r\n", 1)[0][:1000].decode("latin-1").split(" ")
    return first[1] if len(first) > 1 else ""


def refusal(status: int, target: str, found: str = "") -> bytes:
    """Return a whole HTTP answer.

    found: what the parser found wrong, which programs are told.
    """
    code, title, remedy = TEXTS.get(status, TEXTS[400])
    if target.startswith(PROGRAM_PATHS) or is_openai(target):
        message = f"{title}. {remedy}" + (f" ({found})" if found else "")
        body = json.dumps(program_error(target, status, code, message)).encode()
        kind = "application/json"
    else:
        page = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{remedy} {html.escape(found)}</p>"
        body, kind = page.encode(), "text/html; charset=utf-8"
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Heard:
    """A socket that keeps what gunicorn would have said to a client.

    That begins with the status.
    """

    def __init__(self) -> None:
        self._said = b""

    def gettimeout(self) -> float:
        return 0.0

    def sendall(self, data: bytes) -> None:
        self._said += data

    @property
    def status(self) -> int:
        return int(self._said.split(b" ", 2)[1]) if self._said else 500
