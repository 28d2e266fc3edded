"""Users, for administrators.

List, create, change, lock out, let in, and new passwords; `user_tokens` has their tokens.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db.models import QuerySet
from django_filters.rest_framework import FilterSet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from portal.accounts.models import User
from portal.accounts.people import Profile, change_user, create_user, let_in
from portal.accounts.permissions import AdminOnly
from portal.accounts.selectors import visible_users
from portal.api.common.fields import Email, Name, StrictBoolean, StrictSerializer
from portal.api.common.filters import TextFilter
from portal.api.common.ids import IdField, RowField, public_id
from portal.api.people.limits import LimitIn, LimitOut, ShareResource, limits_told
from portal.api.people.me import USE
from portal.api.people.user_tokens import UserTokens
from scheduler.services.lockouts import lock_out, reset_password
from scheduler.services.quotas import LimitValues, set_limit


class UserOut(serializers.ModelSerializer[User]):
    id = IdField(User)
    admin = serializers.BooleanField(source="is_staff")
    service = serializers.BooleanField(source="is_service", help_text="True for a program's account.")
    active = serializers.BooleanField(source="is_active", help_text="False if the account is deactivated.")
    created_at = serializers.DateTimeField(source="date_joined")
    last_login_at = serializers.DateTimeField(source="last_login", allow_null=True)

    class Meta:
        model = User
        fields = ["id", "username", "email", "admin", "service", "active", "created_at", "last_login_at"]


class NewUserOut(UserOut):
    password = serializers.CharField(
        allow_null=True, help_text="Shown only once; null when the request was repeated."
    )

    class Meta(UserOut.Meta):
        fields = [*UserOut.Meta.fields, "password"]


class NewUserIn(StrictSerializer):
    username = Name(max_length=150, validators=[UnicodeUsernameValidator()])
    email = Email(max_length=254, allow_blank=True, required=False)
    admin = StrictBoolean(default=False)


class ProfileIn(StrictSerializer):
    email = Email(max_length=254, allow_blank=True)
    admin = StrictBoolean()


class ProfileSeen(StrictSerializer):
    email = Email(max_length=254, allow_blank=True, required=False)
    admin = StrictBoolean(required=False)


class UserChangeIn(ProfileIn):
    seen = ProfileSeen(
        required=False, help_text="The values you saw; if they have changed since, the answer is 409."
    )


class PasswordIn(StrictSerializer):
    revoke_tokens = StrictBoolean(
        default=True, help_text="Also revoke the user's API tokens and join tokens."
    )


class DeactivateIn(StrictSerializer):
    hand_over_to = RowField(
        visible_users,
        default=None,
        allow_null=True,
        help_text="Id or name of the one who gets the unfinished jobs; if left out, they are cancelled.",
    )


class PasswordOut(serializers.Serializer[Any]):
    password = serializers.CharField(help_text="Shown only once.")


class UserFilter(FilterSet):
    username = TextFilter(max_length=150, lookup_expr="icontains", help_text="A part of the name.")


class Users(ListModelMixin, RetrieveModelMixin, UserTokens, ShareResource):
    """People, for administrators; everybody reads their own limits and share.

    Who runs a service account reaches its tokens.
    """

    noun = "user"
    moving = USE | ShareResource.moving | {"last_login_at", "gpu_hours_used"}
    about = {"list": "Everyone, newest first.", "retrieve": "One person."}
    serializer_class = UserOut
    queryset = User.objects.none()
    lookup_url_kwarg = "user_id"
    filterset_class = UserFilter
    takes = {
        "create": NewUserIn,
        "partial_update": UserChangeIn,
        "password": PasswordIn,
        "deactivate": DeactivateIn,
        "set_limits": LimitIn,
        **UserTokens.takes,
        **ShareResource.takes,
    }
    tells = {
        "create": NewUserOut,
        "password": PasswordOut,
        "limits": LimitOut,
        "set_limits": LimitOut,
        **UserTokens.tells,
        **ShareResource.tells,
    }
    orders = {"created_at": "date_joined", "username": "username"}

    def get_permissions(self) -> list[Any]:
        own = self.action in ("limits", "share") and self.request.method in SAFE_METHODS
        open_to_all = own or self.action in self.token_actions
        return [*super().get_permissions()] if open_to_all else [AdminOnly()]

    def get_queryset(self) -> QuerySet[User]:
        return visible_users(self.request.user)

    def get_object(self) -> User:
        """Anybody for administrators; others find themselves alone."""
        text = self.kwargs[self.lookup_url_kwarg]
        if self.action in self.token_actions:
            return self.owner_of_tokens(text)
        me = self.request.user
        others = visible_users(me) if AdminOnly().has_permission(self.request, self) else User.objects.none()
        return me if text in (me.username, public_id(User, me.pk)) else self.row_named(others, text)

    def create(self, request: Any) -> Response:
        """A new person with a password made for them."""
        values = self.body()
        profile = Profile(email=values.get("email", ""), is_staff=values["admin"])
        return self.made_with_secret(
            lambda: create_user(username=values["username"], profile=profile, **self.by), "password"
        )

    def partial_update(self, request: Any, user_id: str) -> Response:
        """Change the mail address and the role of a person."""
        user, values = self.get_object(), self.body()
        now_so = {"email": user.email, "admin": user.is_staff}
        seen = {**now_so, **values.pop("seen", {})}
        wanted = {**seen, **values}
        if wanted == now_so:
            return self.tell(user)
        before, after = (Profile(email=one["email"], is_staff=one["admin"]) for one in (seen, wanted))
        return self.tell(change_user(user=user, profile=after, seen=before, **self.by))

    @action(detail=True, methods=["post"])
    def password(self, request: Any, user_id: str) -> Response:
        """Set a new password for a person.

        All their sessions end, and so do their tokens unless you say otherwise.
        """
        user, revoke = self.get_object(), self.body()["revoke_tokens"]
        return Response({"password": reset_password(user=user, revoke=revoke, **self.by)})

    @action(detail=True, methods=["post"])
    def deactivate(self, request: Any, user_id: str) -> Response:
        """Lock a person out at once, whatever runs.

        Sessions and tokens end for good, and jobs are cancelled or handed over.
        """
        user, successor = self.get_object(), self.body()["hand_over_to"]
        return self.tell(lock_out(user=user, successor=successor, **self.by))

    @action(detail=True, methods=["post"])
    def activate(self, request: Any, user_id: str) -> Response:
        """Let a person in again; the sessions and tokens that ended do not come back."""
        return self.tell(let_in(user=self.get_object(), **self.by))

    @action(detail=True)
    def limits(self, request: Any, user_id: str) -> Response:
        """The limits of a person: your own, or anybody's for administrators."""
        return Response(limits_told(self.get_object()))

    @limits.mapping.put
    def set_limits(self, request: Any, user_id: str) -> Response:
        """Give a person limits of their own (administrators)."""
        user = self.get_object()
        set_limit(user=user, values=LimitValues(**self.body()), **self.by)
        return Response(limits_told(user))

    @limits.mapping.delete
    def remove_limits(self, request: Any, user_id: str) -> Response:
        """Let the limits of everybody hold for a person again (administrators)."""
        set_limit(user=self.get_object(), values=None, **self.by)
        return Response(status=204)
