"""The base of all views: it refuses what it does not know.

Views for administrators, and of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.accounts.permissions import AdminOnly
from portal.api.common.fields import StrictSerializer
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

    `query` has the parameters by method, in a viewset by action, and `parameters` their checked values.
    """

    query: ClassVar[Mapping[str, type[StrictSerializer]]] = {}
    parameters: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in self.allowed_methods:
            self.parameters = self.read_parameters(request)

    def read_parameters(self, request: Request) -> dict[str, Any]:
        """Raises ValidationError, also for unknown or repeated ones."""
        return read_query(self.query_class(self.asked_for(request)), request.query_params)

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
