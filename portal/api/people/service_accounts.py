"""Service accounts: accounts for programs, for administrators and leads of teams.

Their tokens are made, rotated and ended under `users/ID/tokens/`.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from portal.accounts.errors import NotAllowed
from portal.accounts.models import User
from portal.accounts.people import let_in
from portal.accounts.permissions import AdminOnly
from portal.accounts.selectors import teams_to_serve, visible_service_accounts, visible_teams
from portal.accounts.service_accounts import create_service_account
from portal.api.common.fields import Name, StrictSerializer
from portal.api.common.ids import IdField, RowField
from portal.api.common.refs import TeamRef
from portal.api.common.viewsets import Resource
from portal.api.people.users import UserFilter
from scheduler.services.lockouts import lock_out


class ServiceAccountOut(serializers.ModelSerializer[User]):
    id = IdField(User)
    team = TeamRef(source="service_team", allow_null=True, help_text="Whose leads run it; null: nobody's.")
    active = serializers.BooleanField(source="is_active", help_text="False once it has ended.")
    created_at = serializers.DateTimeField(source="date_joined")

    class Meta:
        model = User
        fields = ["id", "username", "team", "active", "created_at"]


class ServiceAccountIn(StrictSerializer):
    username = Name(
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text="Stands as the owner of its jobs, e.g. ci-linguists.",
    )
    team = RowField(
        visible_teams,
        default=None,
        allow_null=True,
        help_text="Id or name of the team that it becomes a member of and whose leads run it; null: none, and"
        " administrators alone run it.",
    )


class ServiceAccounts(ListModelMixin, RetrieveModelMixin, Resource):
    """Accounts for programs, which own their jobs and have tokens but no password."""

    noun = "service account of yours"
    about = {
        "list": "The service accounts that you run, newest first; all of them for administrators.",
        "retrieve": "One service account.",
    }
    serializer_class = ServiceAccountOut
    queryset = User.objects.none()
    lookup_url_kwarg = "account_id"
    filterset_class = UserFilter
    takes = {"create": ServiceAccountIn}
    orders = {"created_at": "date_joined", "username": "username"}

    @property
    def as_admin(self) -> bool:
        return AdminOnly().has_permission(self.request, self)

    def get_queryset(self) -> QuerySet[User]:
        return visible_service_accounts(self.request.user, as_admin=self.as_admin)

    def create(self, request: Any) -> Response:
        """Make a service account for a team that you lead.

        Administrators make one for any team, or for none.
        """
        values = self.body()
        team, as_admin = values["team"], self.as_admin
        if team is None and not as_admin:
            raise NotAllowed("Name a team that you lead; only administrators make accounts for none.")
        served = teams_to_serve(request.user, as_admin=as_admin)
        if team is not None and not served.filter(pk=team.pk).exists():
            raise NotAllowed("Only the team's leads and administrators with full rights may do this.")
        return self.made(lambda: create_service_account(**values, **self.by))

    def destroy(self, request: Any, account_id: str) -> Response:
        """End a service account, its tokens and its unfinished jobs at once."""
        lock_out(user=self.get_object(), **self.by)
        return Response(status=204)

    @action(detail=True, methods=["post"])
    def activate(self, request: Any, account_id: str) -> Response:
        """Let a service account in again; ended tokens do not come back."""
        return self.tell(let_in(user=self.get_object(), **self.by))
