"""Permissions of a request: its person's role, narrowed by its token's scope."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.accounts.models import ApiToken, Scope, User

if TYPE_CHECKING:  # rest_framework.views loads this module while it is being loaded itself
    from rest_framework.views import APIView

_OPENAI = r"/v1|/openai(/v1|/deployments/[^/]+)?"
# What a token needs for a request that is no mere GET, by the beginning of its address; elsewhere `write`. A
# view for administrators (`AdminOnly`) needs `admin` besides.
NEEDED: tuple[tuple[re.Pattern[str], Scope], ...] = (
    # They answer a question and change nothing that anybody else sees.
    (re.compile(r"/api/(recommendations|intents|logs)/"), Scope.READ),
    (re.compile(rf"({_OPENAI})/fine_tuning/estimates\Z"), Scope.READ),
    # A token may end and rotate itself; others are looked at where it is done.
    (re.compile(r"/api/tokens/[^/]+/"), Scope.READ),
    (re.compile(r"/api/(jobs|arrays|files|uploads|imports)/"), Scope.SUBMIT),
    (re.compile(rf"({_OPENAI})/(files|uploads|fine_tuning)\b"), Scope.SUBMIT),
)


def needed_scope(method: str | None, path: str) -> Scope:
    """The scope that a token needs for a request."""
    if method in SAFE_METHODS:
        return Scope.READ
    return next((scope for address, scope in NEEDED if address.match(path)), Scope.WRITE)


def token_allows(request: Request, needed: Scope) -> bool:
    """Has the request a token of this scope, or a session, which has all of them?"""
    token = request.auth
    return not isinstance(token, ApiToken) or Scope(token.scope).includes(needed)


class Scoped(BasePermission):
    """Signed in, with a token whose scope is wide enough."""

    message: str

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        needed = needed_scope(request.method, request.path)
        self.message = f"This needs a token of the scope {needed} or more; yours has less."
        return token_allows(request, needed)


class AdminOnly(BasePermission):
    """An administrator; a token needs the scope `admin`."""

    message = "Only administrators may do this, with a token of the scope admin that is bound to no team."

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = request.user
        return isinstance(user, User) and user.is_admin and token_allows(request, Scope.ADMIN)
