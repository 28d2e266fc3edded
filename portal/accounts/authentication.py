"""Bearer tokens for programs: `Authorization: Bearer ft-…`."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.accounts.models import ApiToken, User
from portal.accounts.services import find_token
from portal.clock import database_now


class BearerAuthentication(BaseAuthentication):
    """The sender of a request by its token; `request.auth` is then the ApiToken."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token's owner and the token, or None without a bearer header.

        None lets a session authenticate the request. Raises AuthenticationFailed (401).
        """
        scheme, _, plain = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = find_token(plain=plain.strip(), now=database_now())
        if token is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked; create a new one.")
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="foretune"'
