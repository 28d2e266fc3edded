"""Bearer tokens for programs: `Authorization: Bearer ft-…`."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.accounts.errors import NotAllowed
from portal.accounts.models import ApiToken, Scope, User
from portal.accounts.services import find_token
from portal.accounts.token_bounds import is_inside
from portal.clock import database_now

REFUSED = "The token is unknown, expired or revoked; create a new one."


class BearerAuthentication(BaseAuthentication):
    """The sender of a request by its token; `request.auth` is then the ApiToken."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token's owner and the token, or None without a token.

        None lets a session authenticate the request. Raises AuthenticationFailed (401), and NotAllowed (403)
        for a token that is used from elsewhere than it may be, or for a team that its owner has left.
        """
        plain = self.text_of(request)
        if plain is None:
            return None
        token = token_of(plain, request._request)
        if token is None:
            raise AuthenticationFailed(REFUSED)
        return token.owner, token

    def text_of(self, request: Request) -> str | None:
        """The token as the request carries it; None if it carries none."""
        return bearer_of(request._request)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="foretune"'


def bearer_of(request: HttpRequest) -> str | None:
    """The text after `Bearer`; None without such a header."""
    scheme, _, plain = request.headers.get("Authorization", "").partition(" ")
    return plain.strip() if scheme.lower() == "bearer" else None


def token_of(plain: str, request: HttpRequest) -> ApiToken | None:
    """The valid token with this text, whose owner has what it leaves them; else None.

    Raises NotAllowed for a token that may not be used from the address that sent the request, and for one of
    a team that its owner has left.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    used_for = f"{request.method} {request.path}"
    token = find_token(plain=plain, now=database_now(), address=address, used_for=used_for)
    if token is None:
        return None
    if not is_inside(address, token.networks):
        raise NotAllowed(f"This token may not be used from {address}; its owner can see from where it may.")
    token.owner.bound_team_id = token.team_id
    if token.team is not None and token.team_id not in token.owner.team_ids:
        raise NotAllowed(f"This token is bound to the team {token.team.name}, which its owner has left.")
    token.owner.changes_own_alone = token.scope == Scope.SUBMIT
    return token
