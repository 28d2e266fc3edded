"""Tokens of others.

Of anybody for administrators, of service accounts for who runs them.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.decorators import action
from rest_framework.response import Response

from portal.accounts.models import ApiToken, User
from portal.accounts.permissions import AdminOnly
from portal.accounts.selectors import tokens_of, visible_service_accounts, visible_users
from portal.accounts.service_accounts import create_service_token, rotate_service_token
from portal.accounts.services import revoke_token
from portal.api.common.ids import row_of
from portal.api.common.pages import PageQuery
from portal.api.common.viewsets import Resource
from portal.api.people.me import NewTokenOut, ServiceTokenIn, TokenOut, bounds_of, token_of_request
from scheduler.services.lockouts import revoke_all


class UserTokens(Resource):
    """What people and service accounts have in common: tokens that others look after."""

    token_actions = ("tokens", "add_token", "revoke_tokens", "token", "revoke_token", "rotate_token")
    takes = {"add_token": ServiceTokenIn}
    tells = {
        "tokens": TokenOut(many=True),
        "token": TokenOut,
        "add_token": {201: NewTokenOut},
        "rotate_token": {201: NewTokenOut},
    }
    query = {"tokens": PageQuery}

    def owner_of_tokens(self, text: str) -> User:
        """Anybody for administrators; others find service accounts that they run.

        Raises NotFound.
        """
        everybody = AdminOnly().has_permission(self.request, self)
        asker = self.request.user
        found = visible_users(asker) if everybody else visible_service_accounts(asker, as_admin=False)
        return self.row_named(found, text)

    @action(detail=True)
    def tokens(self, request: Any, user_id: str) -> Response:
        """Tokens of a person or service account, newest first.

        The tokens themselves are not kept. Of anybody for administrators, of a team's service accounts for
        its leads.
        """
        return self.pages(self._tokens(), TokenOut)

    @tokens.mapping.post
    def add_token(self, request: Any, user_id: str) -> Response:
        """Make a token for a service account (who runs it).

        A token cannot create one that may do more, or lives longer, than itself.
        """
        account, values = self.get_object(), self.body()
        name, bounds = values.pop("name"), bounds_of(values)
        through = token_of_request(request)
        return self.made_with_secret(
            lambda: create_service_token(
                account=account, name=name, bounds=bounds, through=through, **self.by
            ),
            "token",
            load=lambda key: self._tokens().get(pk=key),
            told=TokenOut,
        )

    @tokens.mapping.delete
    def revoke_tokens(self, request: Any, user_id: str) -> Response:
        """End all of a person's or service account's tokens at once.

        The join tokens that they made end, too.
        """
        revoke_all(user=self.get_object(), **self.by)
        return Response(status=204)

    @action(detail=True, url_path="tokens/<str:token_id>")
    def token(self, request: Any, user_id: str, token_id: str) -> Response:
        """One token of a person or service account."""
        return Response(TokenOut(self._token(token_id)).data)

    @token.mapping.delete
    def revoke_token(self, request: Any, user_id: str, token_id: str) -> Response:
        """End one token of a person or service account at once."""
        revoke_token(token=self._token(token_id), **self.by)
        return Response(status=204)

    @action(detail=True, methods=["post"], url_path="tokens/<str:token_id>/rotate")
    def rotate_token(self, request: Any, user_id: str, token_id: str) -> Response:
        """Put a new token in the place of a service account's.

        The old one goes on for a day.
        """
        token = self._token(token_id)
        path = request.path.removesuffix(f"{token_id}/rotate/")
        return self.made_with_secret(
            lambda: rotate_service_token(token=token, through=token_of_request(request), **self.by),
            "token",
            load=lambda key: self._tokens().get(pk=key),
            told=TokenOut,
            path=path,
        )

    def _tokens(self) -> QuerySet[ApiToken]:
        return tokens_of(self.get_object(), seen_by=self.request.user)

    def _token(self, text: str) -> ApiToken:
        return row_of(self._tokens(), text, "token of this user")
