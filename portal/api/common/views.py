"""The base of all views: it refuses what it does not know.

Views for administrators, and of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

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

    Of an answer to GET the reader may choose `fields`.
    `query` has the parameters by method, in a viewset by action, and `parameters` their checked values.
    """

    query: ClassVar[Mapping[str, type[StrictSerializer]]] = {}
    parameters: dict[str, Any]
    has_fields: ClassVar[bool] = True  # a reader may choose some by `fields=`

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in self.allowed_methods:
            self.parameters = self.read_parameters(request)

    def read_parameters(self, request: Request) -> dict[str, Any]:
        """Raises ValidationError, also for unknown or repeated ones."""
        return read_query(self.query_class(self.asked_for(request)), self.query_of(request))

    def query_of(self, request: Request) -> QueryDict:
        """The parameters beside the fields that a reader chooses."""
        return without_fields(request.query_params) if self.may_choose(request) else request.query_params

    def may_choose(self, request: Request) -> bool:
        return self.has_fields and request.method in SAFE_METHODS

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
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


class AdminWritesApi(StrictView):
    """Everyone reads; only administrators change something."""

    def get_permissions(self) -> list[Any]:
        reads = self.request.method in SAFE_METHODS
        return [*super().get_permissions()] if reads else [AdminOnly()]
