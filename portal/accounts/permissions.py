"""Permissions of a request: its person's role, narrowed by its token's scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.accounts.models import ApiToken, Scope, User

if TYPE_CHECKING:  # rest_framework.views loads this module while it is being loaded itself
    from rest_framework.views import APIView


def _scope_allows(request: Request, needed: Scope) -> bool:
    # A session has no token, and therefore no limit beyond its person's role.
    token = request.auth
    return not isinstance(token, ApiToken) or Scope(token.scope).includes(needed)


class Scoped(BasePermission):
    """Signed in; a token needs `read` to look and `write` to change."""

    message = "The token's scope does not allow this; create a token with the scope write."

    def has_permission(self, request: Request, view: APIView) -> bool:
        needed = Scope.READ if request.method in SAFE_METHODS else Scope.WRITE
        return bool(request.user.is_authenticated) and _scope_allows(request, needed)


class AdminOnly(BasePermission):
    """An administrator; a token needs the scope `admin`."""

    message = "Only administrators may do this, with a token of the scope admin."

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = request.user
        return isinstance(user, User) and user.is_admin and _scope_allows(request, Scope.ADMIN)
