"""The refusal of a body whose end is missing (docs/adr/0025).

Its beginning is neither the form nor the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError

from portal.http.error_pages import answer

CUT = ("incomplete", "The request arrived incomplete", "Check the connection, then send it again.")


class CutBodyMiddleware:
    """Middleware that answers 400 for a cut body.

    It stands behind the CSRF check, which reads forms and passes over such errors.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        return answer(request, 400, CUT) if _is_cut(request) else response

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """A view would find an empty form, and act on it."""
        return answer(request, 400, CUT) if _is_cut(request) else None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return answer(request, 400, CUT) if isinstance(exception, UnreadablePostError) else None


def _is_cut(request: HttpRequest) -> bool:
    """Was the body cut? Only a server that hands over a WholeBody can say so."""
    return bool(getattr(request.META.get("wsgi.input"), "cut", False))
