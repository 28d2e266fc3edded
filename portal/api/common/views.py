"""Views for administrators, views that only they write to, and views of files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.accounts.permissions import AdminOnly


class AnyAccept(DefaultContentNegotiation):
    """Answer with a file whatever a client says it accepts.

    Otherwise `Accept: text/csv`, or that of another file, would be refused. Errors are JSON as ever.
    """

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, first.media_type


class AdminApi(APIView):
    """A resource for administrators alone."""

    permission_classes: list[type[BasePermission]] = [AdminOnly]


class AdminWritesApi(APIView):
    """Everyone reads; only administrators change something."""

    def get_permissions(self) -> list[Any]:
        reads = self.request.method in SAFE_METHODS
        return [*super().get_permissions()] if reads else [AdminOnly()]
