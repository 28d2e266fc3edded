"""The signed-in person and their tokens."""

from __future__ import annotations

from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from portal.accounts.models import ApiToken, Scope, Team, User
from portal.accounts.permissions import token_allows
from portal.accounts.requests import ApiRequest
from portal.accounts.selectors import own_tokens
from portal.accounts.services import create_token, revoke_token
from portal.accounts.token_bounds import Bounds, refuse_greater
from portal.api.common.fields import ChoiceField, Name, StrictSerializer, ZonedDateTime
from portal.api.common.idempotent import KEY, create_with_secret
from portal.api.common.pages import list_of
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.errors import NotFound
from scheduler.selectors.files import Storage, storage_of


class StorageOut(serializers.Serializer[Storage]):
    used_bytes = serializers.IntegerField(help_text="Bytes of your uploads; identical content counts once.")
    quota_bytes = serializers.IntegerField()


class MeOut(serializers.ModelSerializer[User]):
    admin = serializers.BooleanField(source="is_admin")
    teams: serializers.SlugRelatedField[Team] = serializers.SlugRelatedField(
        many=True, read_only=True, slug_field="name"
    )
    storage = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["id", "username", "email", "admin", "teams", "storage"]

    @extend_schema_field(StorageOut)
    def get_storage(self, user: User) -> dict[str, Any]:
        return dict(StorageOut(storage_of(user)).data)


class TokenIn(StrictSerializer):
    name = Name(max_length=100)
    scope = ChoiceField(choices=Scope.choices, default=Scope.WRITE)
    expires_at = ZonedDateTime(required=False, allow_null=True)

    def validate_expires_at(self, value: Any) -> Any:
        if value is not None and value <= database_now():
            raise ValidationError("must lie in the future")
        return value


class TokenOut(serializers.ModelSerializer[ApiToken]):
    class Meta:
        model = ApiToken
        fields = ["id", "name", "scope", "hint", "created_at", "expires_at", "revoked_at", "last_used_at"]


class NewTokenOut(TokenOut):
    token = serializers.CharField(
        allow_null=True, help_text="The token itself, shown only once; null when the request was repeated."
    )

    class Meta(TokenOut.Meta):
        fields = [*TokenOut.Meta.fields, "token"]


TokenList = list_of(TokenOut)


class MeApi(StrictView):
    @extend_schema(operation_id="me_retrieve", responses=MeOut)
    def get(self, request: ApiRequest) -> Response:
        """The person the request speaks for."""
        return Response(MeOut(request.user).data)


def _own_token(request: ApiRequest) -> ApiToken | None:
    return request.auth if isinstance(request.auth, ApiToken) else None


class TokensApi(StrictView):
    @extend_schema(operation_id="tokens_list", responses=TokenList)
    def get(self, request: ApiRequest) -> Response:
        """Your tokens, newest first; the tokens themselves are not kept."""
        return Response({"data": TokenOut(own_tokens(request.user), many=True).data})

    @extend_schema(
        operation_id="tokens_create", parameters=[KEY], request=TokenIn, responses={201: NewTokenOut}
    )
    def post(self, request: ApiRequest) -> Response:
        """Create a token.

        A token cannot create one that may do more, or lives longer, than itself.
        """
        data = TokenIn(data=request.data)
        data.is_valid(raise_exception=True)
        said = data.validated_data
        refuse_greater(
            _own_token(request), Bounds(scope=Scope(said["scope"]), expires_at=said.get("expires_at"))
        )
        make = partial(create_token, owner=request.user, now=database_now(), **said)
        token, plain = create_with_secret(
            request, make=make, load=lambda pk: own_tokens(request.user).get(pk=pk)
        )
        return Response({**TokenOut(token).data, "token": plain}, status=201)


class RevokeApi(StrictView):
    @extend_schema(operation_id="tokens_revoke", request=None, responses=TokenOut)
    def post(self, request: ApiRequest, token_id: int) -> Response:
        """End one of your tokens at once."""
        token = own_tokens(request.user).filter(pk=token_id).first()
        if token is None:
            raise NotFound("There is no such token of yours.")
        own = _own_token(request)
        if own is not None and own != token and not token_allows(request, Scope.WRITE):
            raise PermissionDenied("A token of this scope ends itself alone; others need the scope write.")
        return Response(TokenOut(revoke_token(token=token, actor=request.user, now=database_now())).data)
