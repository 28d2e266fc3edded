"""Users, for administrators: list, create, change, lock out, let in, new passwords."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import User
from portal.accounts.people import Profile, change_user, create_user, reset_password, set_active
from portal.accounts.permissions import AdminOnly
from portal.accounts.requests import ApiRequest
from portal.accounts.selectors import visible_users
from portal.api.fields import Email, Strict, Text, Truth
from portal.api.pages import PageQuery, page, page_of, read_query
from portal.api.repeatable import KEY, create_with_secret
from portal.clock import database_now
from scheduler.errors import NotFound
from scheduler.services.removals import deactivate_user


class UserOut(serializers.ModelSerializer[User]):
    admin = serializers.BooleanField(source="is_staff")
    active = serializers.BooleanField(source="is_active", help_text="False: locked out.")

    class Meta:
        model = User
        fields = ["id", "username", "email", "admin", "active", "date_joined", "last_login"]


class NewUserOut(UserOut):
    password = serializers.CharField(
        allow_null=True, help_text="Shown only now; null when the request was repeated."
    )

    class Meta(UserOut.Meta):
        fields = [*UserOut.Meta.fields, "password"]


class ProfileIn(Strict):
    email = Email(max_length=254, allow_blank=True)
    admin = Truth()


class NewUserIn(Strict):
    username = Text(max_length=150, validators=[UnicodeUsernameValidator()])
    email = Email(max_length=254, allow_blank=True, default="")
    admin = Truth(default=False)


class ChangeUserIn(ProfileIn):
    seen = ProfileIn(help_text="The values you saw: if they are others by now, nothing is changed (409).")


class UserQuery(PageQuery):
    username = serializers.CharField(max_length=150, required=False, help_text="A part of the name.")


class PasswordOut(serializers.Serializer[Any]):
    password = serializers.CharField(help_text="Shown only now.")


UserPage = page_of(UserOut)


def _profile(said: dict[str, Any]) -> Profile:
    return Profile(email=said["email"], is_staff=said["admin"])


def _user(request: ApiRequest, user_id: int) -> User:
    found = visible_users(request.user).filter(pk=user_id).first()
    if found is None:
        raise NotFound("There is no such user.")
    return found


class AdminApi(APIView):
    permission_classes: list[type[BasePermission]] = [AdminOnly]


class UsersApi(AdminApi):
    @extend_schema(operation_id="users_list", parameters=[UserQuery], responses=UserPage)
    def get(self, request: ApiRequest) -> Response:
        """Everyone, newest first."""
        query = read_query(UserQuery, request.query_params)
        rows = visible_users(request.user).filter(username__icontains=query.pop("username", ""))
        return Response(page(rows, lambda row: UserOut(row).data, **query))

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
    @extend_schema(operation_id="users_password", request=None, responses=PasswordOut)
    def post(self, request: ApiRequest, user_id: int) -> Response:
        """A new password for a person; all their sessions end."""
        user = _user(request, user_id)
        return Response({"password": reset_password(user=user, actor=request.user, now=database_now())})


def _verb(name: str, text: str, act: Callable[..., User]) -> type[APIView]:
    class VerbApi(AdminApi):
        @extend_schema(operation_id=f"users_{name}", description=text, request=None, responses=UserOut)
        def post(self, request: ApiRequest, user_id: int) -> Response:
            user = act(user=_user(request, user_id), actor=request.user, now=database_now())
            return Response(UserOut(user).data)

    return VerbApi


DeactivateApi = _verb(
    "deactivate", "Lock a person out; refused while jobs of theirs have not ended.", deactivate_user
)
ActivateApi = _verb("activate", "Let a person in again.", partial(set_active, active=True))
