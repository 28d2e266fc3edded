"""The base of all views: it refuses what it does not know.

Views for administrators, and of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, ClassVar

from django.db.models import Model
from django.http import QueryDict
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.permissions import AdminOnly
from portal.api.common.fields import StrictSerializer
from portal.api.common.narrow import FIELDS, narrowed, without_fields
from portal.api.common.pages import NoQuery, read_query
from portal.api.common.tags import MATCH, refuse_outdated, with_tag
from scheduler.services.conditions import held


class AnyAccept(DefaultContentNegotiation):
    """Answer with a file whatever a client says it accepts.

    Otherwise `Accept: text/csv`, or that of another file, would be refused. Errors are JSON as ever.
    """

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, first.media_type


class StrictView(APIView):
    """A view that answers 400 to query parameters that it does not know.

    Of an answer to GET the reader may choose `fields`; one that tells one object has a tag (`tags.py`).
    `query` has the parameters by method, in a viewset by action, and `parameters` their checked values.
    """

    query: ClassVar[Mapping[str, type[StrictSerializer]]] = {}
    parameters: dict[str, Any]
    has_fields: ClassVar[bool] = True  # a reader may choose some by `fields=`, or know the answer by its tag
    moving: ClassVar[frozenset[str]] = frozenset()  # fields of an object that change by themselves

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in self.allowed_methods:
            self.parameters = self.read_parameters(request)
            if self.has_fields and MATCH in request.headers and request.method not in SAFE_METHODS:
                self.begin_from_match(request)

    def read_parameters(self, request: Request) -> dict[str, Any]:
        """Raises ValidationError, also for unknown or repeated ones."""
        return read_query(self.query_class(self.asked_for(request)), self.query_of(request))

    def query_of(self, request: Request) -> QueryDict:
        """The parameters beside the fields that a reader chooses."""
        return without_fields(request.query_params) if self.may_choose(request) else request.query_params

    def may_choose(self, request: Request) -> bool:
        return self.has_fields and request.method in SAFE_METHODS

    def begin_from_match(self, request: Request) -> None:
        """Let the change begin only from what `If-Match` names.

        That is held until the change is made.
        """
        method = str(request.method).lower()
        change: Callable[..., Response] = getattr(self, method)

        def begun(request: Request, *args: Any, **kwargs: Any) -> Response:
            # Verbs may take long, and know by the state what they begin from.
            with nullcontext() if method == "post" else held(self.row_to_change(), request.path):
                refuse_outdated(request, self._present_tag(request, *args, **kwargs))
                return change(request, *args, **kwargs)

        setattr(self, method, begun)

    def row_to_change(self) -> Model | None:
        """What the address names, where that is a row."""
        return None

    def _present_tag(self, request: Request, *args: Any, **kwargs: Any) -> str | None:
        """The tag of what GET answers now; None without one."""
        sent, self.parameters = self.parameters, {}
        try:
            told = self.read_again(request, *args, **kwargs)
        finally:
            self.parameters = sent
        return with_tag(request, told, self.moving).headers.get("ETag") if told else None

    def read_again(self, request: Request, *args: Any, **kwargs: Any) -> Response | None:
        """What GET answers now, without parameters; None where there is no GET."""
        read: Callable[..., Response] | None = getattr(self, "get", None)
        self.parameters = read_query(self.query_class("get"), QueryDict())
        return read(request, *args, **kwargs) if read else None

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        if self.has_fields and request.method != "POST" and hasattr(self, "get"):
            response = with_tag(request, response, self.moving)
        if self.may_choose(request) and FIELDS in request.GET and response.status_code == 200:
            try:
                response.data = narrowed(getattr(response, "data", None), request.GET)
            except ValidationError as wrong:
                response = self.handle_exception(wrong)
        return super().finalize_response(request, response, *args, **kwargs)

    def query_class(self, asked: str) -> type[StrictSerializer]:
        """The parameters of a method, in a viewset of an action."""
        return self.query.get(asked, NoQuery)

    @staticmethod
    def asked_for(request: Request) -> str:
        method = str(request.method).lower()
        return "get" if method == "head" else method


class AdminApi(StrictView):
    """A resource for administrators alone."""

    permission_classes: list[type[BasePermission]] = [AdminOnly]
