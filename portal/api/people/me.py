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
from portal.accounts.selectors import own_teams, own_tokens
from portal.accounts.services import create_bound_token, revoke_token
from portal.accounts.token_bounds import MOST_NETWORKS, Bounds, clean_networks, refuse_greater, usual_end
from portal.api.common.fields import ChoiceField, Name, StrictSerializer, StrictText, ZonedDateTime
from portal.api.common.idempotent import KEY, create_with_secret
from portal.api.common.ids import RowField
from portal.api.common.pages import list_of
from portal.api.common.refs import TeamRef
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
    expires_at = ZonedDateTime(
        required=False,
        allow_null=True,
        help_text="In 90 days (the portal's TOKEN_DAYS) if left out; null: never, where that is allowed.",
    )
    team = RowField(
        own_teams, default=None, allow_null=True, help_text="Id or name of the only one that it reaches."
    )
    networks = serializers.ListField(
        child=StrictText(max_length=60),
        max_length=MOST_NETWORKS,
        default=list,
        help_text="Addresses and ranges that it may be used from; none: from anywhere.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The networks in one form, and an end unless null was given for it."""
        end = attrs.get("expires_at") if "expires_at" in attrs else usual_end(database_now())
        return {**attrs, "networks": clean_networks(attrs["networks"]), "expires_at": end}

    def validate_expires_at(self, value: Any) -> Any:
        if value is not None and value <= database_now():
            raise ValidationError("must lie in the future")
        return value


class TokenOut(serializers.ModelSerializer[ApiToken]):
    team = TeamRef(allow_null=True, help_text="The only one that it reaches; null: all that its owner sees.")
    networks = serializers.ListField(child=serializers.CharField(), help_text="From where it may be used.")

    class Meta:
        model = ApiToken
        fields = [
            "id", "name", "scope", "team", "networks", "hint", "created_at", "expires_at", "revoked_at",
            "last_used_at", "last_used_for", "last_used_from",
        ]  # fmt: skip


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
        data = TokenIn(data=request.data, context={"request": request})
        data.is_valid(raise_exception=True)
        said = dict(data.validated_data)
        name, bounds = said.pop("name"), Bounds(**{**said, "scope": Scope(said["scope"])})
        refuse_greater(_own_token(request), bounds)
        make = partial(create_bound_token, owner=request.user, name=name, bounds=bounds, now=database_now())
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
