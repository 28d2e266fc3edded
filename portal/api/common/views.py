"""Views that only administrators may use, or may change something through."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.views import APIView

from portal.accounts.permissions import AdminOnly


class AdminApi(APIView):
    """A resource for administrators alone."""

    permission_classes: list[type[BasePermission]] = [AdminOnly]


class AdminWritesApi(APIView):
    """Everyone reads; only administrators change something."""

    def get_permissions(self) -> list[Any]:
        reads = self.request.method in SAFE_METHODS
        return [*super().get_permissions()] if reads else [AdminOnly()]
