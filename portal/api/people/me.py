"""The signed-in person and their tokens."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from portal.accounts.models import ApiToken, Scope, User
from portal.accounts.permissions import token_allows
from portal.accounts.requests import ApiRequest
from portal.accounts.selectors import own_teams, own_tokens, visible_teams
from portal.accounts.services import create_bound_token, revoke_token, rotate_token
from portal.accounts.token_bounds import MOST_NETWORKS, Bounds, clean_networks, usual_end
from portal.api.common.fields import ChoiceField, Name, StrictSerializer, StrictText, ZonedDateTime
from portal.api.common.ids import IdField, RowField
from portal.api.common.refs import TeamRef
from portal.api.common.views import StrictView
from portal.api.common.viewsets import Resource
from portal.clock import database_now
from scheduler.selectors.files import Storage, storage_of


class StorageOut(serializers.Serializer[Storage]):
    used_bytes = serializers.IntegerField(help_text="Bytes of your uploads; identical content counts once.")
    quota_bytes = serializers.IntegerField()


class MeOut(serializers.ModelSerializer[User]):
    id = IdField(User)
    admin = serializers.BooleanField(source="is_admin")
    teams = serializers.SerializerMethodField(help_text="Those that a job may belong to.")
    storage = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ["id", "username", "email", "admin", "teams", "storage"]

    @extend_schema_field(TeamRef(many=True))
    def get_teams(self, user: User) -> Any:
        return TeamRef(own_teams(user), many=True).data

    @extend_schema_field(StorageOut)
    def get_storage(self, user: User) -> dict[str, Any]:
        return dict(StorageOut(storage_of(user)).data)


class ServiceTokenIn(StrictSerializer):
    """A token for a service account."""

    name = Name(max_length=100)
    scope = ChoiceField(choices=Scope.choices, default=Scope.WRITE)
    expires_at = ZonedDateTime(
        required=False,
        allow_null=True,
        help_text="In 90 days (the portal's TOKEN_DAYS) if left out; null: never, where that is allowed.",
    )
    team = RowField(
        visible_teams, default=None, allow_null=True, help_text="Id or name of the only one that it reaches."
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


class TokenIn(ServiceTokenIn):
    """A token of one's own."""

    team = RowField(
        own_teams, default=None, allow_null=True, help_text="Id or name of the only one that it reaches."
    )


class TokenOut(serializers.ModelSerializer[ApiToken]):
    id = IdField(ApiToken)
    team = TeamRef(allow_null=True, help_text="The only one that it reaches; null: all that its owner sees.")
    networks = serializers.ListField(child=serializers.CharField(), help_text="From where it may be used.")

    class Meta:
        model = ApiToken
        fields = [
            "id", "name", "scope", "team", "networks", "hint", "created_at", "expires_at", "revoked_at",
            "last_used_at", "last_used_for", "last_used_from",
        ]  # fmt: skip


USE = frozenset({"last_used_at", "last_used_for", "last_used_from"})  # of a token, which moves by itself


class NewTokenOut(TokenOut):
    token = serializers.CharField(
        allow_null=True, help_text="The token itself, shown only once; null when the request was repeated."
    )

    class Meta(TokenOut.Meta):
        fields = [*TokenOut.Meta.fields, "token"]


def token_of_request(request: ApiRequest) -> ApiToken | None:
    """The token of the request; None in a session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


def bounds_of(values: dict[str, Any]) -> Bounds:
    """The bounds that a checked body names."""
    return Bounds(**{**values, "scope": Scope(values["scope"])})


class MeApi(StrictView):
    @extend_schema(operation_id="me_retrieve", responses=MeOut)
    def get(self, request: ApiRequest) -> Response:
        """The person the request speaks for."""
        return Response(MeOut(request.user).data)


class Tokens(ListModelMixin, RetrieveModelMixin, Resource):
    """Your API tokens."""

    noun, is_named = "token of yours", False
    moving = USE
    about = {
        "list": "Your tokens, newest first; the tokens themselves are not kept.",
        "retrieve": "One of your tokens.",
    }
    serializer_class = TokenOut
    queryset = ApiToken.objects.none()
    lookup_url_kwarg = "token_id"
    takes = {"create": TokenIn}
    tells = {"create": NewTokenOut, "rotate": {201: NewTokenOut}}

    def get_queryset(self) -> QuerySet[ApiToken]:
        return own_tokens(self.request.user)

    def create(self, request: Any) -> Response:
        """Create a token.

        A token cannot create one that may do more, or lives longer, than itself.
        """
        values = self.body()
        name, bounds = values.pop("name"), bounds_of(values)
        through = token_of_request(request)
        return self.made_with_secret(
            lambda: create_bound_token(
                owner=request.user, name=name, bounds=bounds, now=self.now, through=through
            ),
            "token",
        )

    def destroy(self, request: Any, token_id: str) -> Response:
        """End one of your tokens at once."""
        token = self._reached("ends")
        revoke_token(token=token, **self.by)
        return Response(status=204)

    @action(detail=True, methods=["post"])
    def rotate(self, request: Any, token_id: str) -> Response:
        """Put a new token in the place of one of yours.

        It has the same name, bounds and time to live; the old one goes on for a day. Until the new one was
        used, the old one can be rotated again, as after a lost answer.
        """
        token = self._reached("rotates")
        return self.made_with_secret(
            lambda: rotate_token(token=token, through=token_of_request(request), **self.by),
            "token",
            path=request.path.removesuffix(f"{token_id}/rotate/"),
        )

    def _reached(self, does: str) -> ApiToken:
        """A token that the request may change. Raises NotFound, PermissionDenied."""
        token: ApiToken = self.get_object()
        own = token_of_request(self.request)
        if own not in (None, token) and not token_allows(self.request, Scope.WRITE):
            raise PermissionDenied(f"A token of this scope {does} itself alone; others need the scope write.")
        return token
