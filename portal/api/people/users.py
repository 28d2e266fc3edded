"""Users, for administrators.

List, create, change, lock out, let in, new passwords, and other people's tokens.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.errors import InvalidValue
from portal.accounts.models import User
from portal.accounts.people import Profile, change_user, create_user, let_in
from portal.accounts.requests import ApiRequest
from portal.accounts.selectors import tokens_of, visible_users
from portal.accounts.services import revoke_token
from portal.api.common.fields import Email, Name, SearchText, StrictBoolean, StrictSerializer
from portal.api.common.idempotent import KEY, create_with_secret
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import AdminApi
from portal.api.people.me import TokenList, TokenOut
from portal.clock import database_now
from scheduler.errors import NotFound
from scheduler.services.lockouts import lock_out, reset_password, revoke_all


class UserOut(serializers.ModelSerializer[User]):
    admin = serializers.BooleanField(source="is_staff")
    active = serializers.BooleanField(source="is_active", help_text="False if the account is deactivated.")

    class Meta:
        model = User
        fields = ["id", "username", "email", "admin", "active", "date_joined", "last_login"]


class NewUserOut(UserOut):
    password = serializers.CharField(
        allow_null=True, help_text="Shown only once; null when the request was repeated."
    )

    class Meta(UserOut.Meta):
        fields = [*UserOut.Meta.fields, "password"]


class ProfileIn(StrictSerializer):
    email = Email(max_length=254, allow_blank=True)
    admin = StrictBoolean()


class NewUserIn(StrictSerializer):
    username = Name(max_length=150, validators=[UnicodeUsernameValidator()])
    email = Email(max_length=254, allow_blank=True, default="")
    admin = StrictBoolean(default=False)


class ChangeUserIn(ProfileIn):
    seen = ProfileIn(help_text="The values you saw; if they have changed since, nothing is changed (409).")


class UserQuery(PageQuery):
    username = SearchText(max_length=150, required=False, help_text="A part of the name.")


class PasswordIn(StrictSerializer):
    revoke_tokens = StrictBoolean(
        default=True, help_text="Also revoke the user's API tokens and join tokens."
    )


class DeactivateIn(StrictSerializer):
    hand_over_to = Name(
        max_length=150, default=None, allow_null=True,
        help_text="Name of the user who gets the unfinished jobs; if left out, they are cancelled.",
    )  # fmt: skip


class PasswordOut(serializers.Serializer[Any]):
    password = serializers.CharField(help_text="Shown only once.")


UserPage = page_of(UserOut)


def _profile(said: dict[str, Any]) -> Profile:
    return Profile(email=said["email"], is_staff=said["admin"])


def _user(request: ApiRequest, user_id: int) -> User:
    found = visible_users(request.user).filter(pk=user_id).first()
    if found is None:
        raise NotFound("There is no such user.")
    return found


class UsersApi(AdminApi):
    query = {"get": UserQuery}

    @extend_schema(operation_id="users_list", responses=UserPage)
    def get(self, request: ApiRequest) -> Response:
        """Everyone, newest first."""
        query = self.parameters
        rows = visible_users(request.user).filter(username__icontains=query.pop("username", ""))
        return Response(page(rows, UserOut().to_representation, **query))

    @extend_schema(
        operation_id="users_create", parameters=[KEY], request=NewUserIn, responses={201: NewUserOut}
    )
    def post(self, request: ApiRequest) -> Response:
        """A new person with a password made for them."""
        data = NewUserIn(data=request.data)
        data.is_valid(raise_exception=True)
        said = data.validated_data
        make = partial(
            create_user,
            actor=request.user,
            username=said["username"],
            profile=_profile(said),
            now=database_now(),
        )
        user, password = create_with_secret(
            request, make=make, load=lambda pk: visible_users(request.user).get(pk=pk)
        )
        return Response({**UserOut(user).data, "password": password}, status=201)


class UserApi(AdminApi):
    @extend_schema(operation_id="users_retrieve", responses=UserOut)
    def get(self, request: ApiRequest, user_id: int) -> Response:
        """One person."""
        return Response(UserOut(_user(request, user_id)).data)


class ChangeUserApi(AdminApi):
    @extend_schema(operation_id="users_change", request=ChangeUserIn, responses=UserOut)
    def post(self, request: ApiRequest, user_id: int) -> Response:
        """Change the mail address and the role of a person."""
        data = ChangeUserIn(data=request.data)
        data.is_valid(raise_exception=True)
        said = data.validated_data
        changed = change_user(
            user=_user(request, user_id),
            profile=_profile(said),
            seen=_profile(said["seen"]),
            actor=request.user,
            now=database_now(),
        )
        return Response(UserOut(changed).data)


class PasswordApi(AdminApi):
    @extend_schema(operation_id="users_password", request=PasswordIn, responses=PasswordOut)
    def post(self, request: ApiRequest, user_id: int) -> Response:
        """Set a new password for a person.

        All their sessions end, and so do their tokens unless you say otherwise.
        """
        said, user = _said(PasswordIn, request), _user(request, user_id)
        revoke = said["revoke_tokens"]
        password = reset_password(user=user, actor=request.user, now=database_now(), revoke=revoke)
        return Response({"password": password})


class DeactivateApi(AdminApi):
    @extend_schema(operation_id="users_deactivate", request=DeactivateIn, responses=UserOut)
    def post(self, request: ApiRequest, user_id: int) -> Response:
        """Lock a person out at once, whatever runs.

        Sessions and tokens end for good, and jobs are cancelled or handed over.
        """
        name, user = _said(DeactivateIn, request)["hand_over_to"], _user(request, user_id)
        successor = visible_users(request.user).filter(username=name).first() if name else None
        if name and successor is None:
            raise InvalidValue("hand_over_to", "There is no user with this name.")
        return _shown(lock_out(user=user, actor=request.user, now=database_now(), successor=successor))


class ActivateApi(AdminApi):
    @extend_schema(operation_id="users_activate", request=None, responses=UserOut)
    def post(self, request: ApiRequest, user_id: int) -> Response:
        """Let a person in again; the sessions and tokens that ended do not come back."""
        return _shown(let_in(user=_user(request, user_id), actor=request.user, now=database_now()))


class UserTokensApi(AdminApi):
    @extend_schema(operation_id="users_tokens_list", responses=TokenList)
    def get(self, request: ApiRequest, user_id: int) -> Response:
        """A person's tokens, newest first; the tokens themselves are not kept."""
        tokens = tokens_of(_user(request, user_id), seen_by=request.user)
        return Response({"data": TokenOut(tokens, many=True).data})


class RevokeUserTokensApi(AdminApi):
    @extend_schema(operation_id="users_tokens_revoke_all", request=None, responses={204: None})
    def post(self, request: ApiRequest, user_id: int) -> Response:
        """End all of a person's tokens at once, and the join tokens that they made."""
        revoke_all(user=_user(request, user_id), actor=request.user, now=database_now())
        return Response(status=204)


class RevokeUserTokenApi(AdminApi):
    @extend_schema(operation_id="users_tokens_revoke", request=None, responses=TokenOut)
    def post(self, request: ApiRequest, user_id: int, token_id: int) -> Response:
        """End one token of a person at once."""
        token = tokens_of(_user(request, user_id), seen_by=request.user).filter(pk=token_id).first()
        if token is None:
            raise NotFound("There is no such token of this person.")
        return Response(TokenOut(revoke_token(token=token, actor=request.user, now=database_now())).data)


def _said(takes: type[StrictSerializer], request: ApiRequest) -> dict[str, Any]:
    body = takes(data=request.data)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


def _shown(user: User) -> Response:
    return Response(UserOut(user).data)
