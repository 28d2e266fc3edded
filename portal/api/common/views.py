"""Views that only administrators may use, or may change something through."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.views import APIView

from portal.accounts.permissions import AdminOnly


class AdminApi(APIView):
    """For administrators alone."""

    permission_classes: list[type[BasePermission]] = [AdminOnly]


class AdminWritesApi(APIView):
    """Everyone reads; only administrators post."""

    def get_permissions(self) -> list[Any]:
        return [AdminOnly()] if self.request.method == "POST" else [*super().get_permissions()]
