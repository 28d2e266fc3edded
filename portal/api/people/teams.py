"""The API of teams.

Everyone sees their own; administrators make and delete them, leads run them too.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from portal.accounts.errors import InvalidValue
from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.permissions import AdminOnly
from portal.accounts.selectors import member_called, members, username_called, visible_teams
from portal.accounts.teams import (
    add_member,
    allow_language_model,
    change_role,
    create_team,
    is_lead,
    remove_member,
    rename_team,
)
from portal.api.common.fields import ChoiceField, Name, StrictBoolean, StrictSerializer
from portal.api.common.idempotent import create, in_one_transaction
from portal.api.common.ids import IdField
from portal.api.common.period import PeriodQuery, read_period
from portal.api.people.limits import (
    USUAL,
    QuotasIn,
    QuotasOut,
    ShareResource,
    UsageOut,
    quota_values,
    quotas_told,
)
from scheduler.errors import NotFound
from scheduler.selectors.analysis.team_usage import team_usage
from scheduler.services.deletions import delete_team
from scheduler.services.quotas import set_quotas


class TeamBrief(serializers.ModelSerializer[Team]):
    """A row of the list."""

    id = IdField(Team)
    size = serializers.IntegerField(help_text="Number of members.")

    class Meta:
        model = Team
        fields = ["id", "name", "size", "created_at", "language_model"]


class MemberOut(serializers.ModelSerializer[Membership]):
    id = IdField(User, source="user_id", help_text="Of the person.")
    name = serializers.CharField(source="user.username")

    class Meta:
        model = Membership
        fields = ["id", "name", "role"]


class TeamOut(TeamBrief):
    members = serializers.SerializerMethodField()

    class Meta(TeamBrief.Meta):
        fields = [*TeamBrief.Meta.fields, "members"]

    @extend_schema_field(MemberOut(many=True))
    def get_members(self, team: Team) -> Any:
        return MemberOut(members(team), many=True).data


class TeamIn(StrictSerializer):
    name = Name(max_length=100)


class TeamSeen(StrictSerializer):
    name = serializers.CharField(required=False, max_length=100)


class TeamChangeIn(TeamIn):
    language_model = StrictBoolean(
        help_text="May members' texts be sent to a language model? For leads and administrators."
    )
    seen = TeamSeen(required=False, help_text="The name you saw; if it has changed since, the answer is 409.")


class MemberIn(StrictSerializer):
    user = Name(max_length=150, help_text="Id or name of the person.")
    role = ChoiceField(choices=Role.choices, default=Role.MEMBER)


class RoleIn(StrictSerializer):
    role = ChoiceField(choices=Role.choices)
    seen = ChoiceField(
        choices=Role.choices,
        required=False,
        help_text="The role you saw; if it has changed since, the answer is 409.",
    )


class Teams(ListModelMixin, RetrieveModelMixin, ShareResource):
    """People who see each other's jobs and are charged together."""

    noun = "team of yours"
    moving = ShareResource.moving | {"warnings"}
    about = {
        "list": "Your teams, newest first; all of them for administrators.",
        "retrieve": "One team with its members, leads first.",
    }
    serializer_class = TeamOut
    queryset = Team.objects.none()
    lookup_url_kwarg = "team_id"
    takes = {
        "create": TeamIn,
        "partial_update": TeamChangeIn,
        "add_member": MemberIn,
        "change_member": RoleIn,
        "set_quotas": QuotasIn,
        **ShareResource.takes,
    }
    tells = {
        "list": TeamBrief,
        "add_member": {201: TeamOut},
        "quotas": QuotasOut,
        "set_quotas": QuotasOut,
        "usage": UsageOut,
        **ShareResource.tells,
    }
    query = {"usage": PeriodQuery}
    orders = {"name": "name", "created_at": "created_at"}

    def get_permissions(self) -> list[Any]:
        """Leads run their teams; the rest that is written is for administrators."""
        led = self.action in ("partial_update", "add_member", "change_member", "remove_member")
        open_to_all = led or self.request.method in SAFE_METHODS
        return [*super().get_permissions()] if open_to_all else [AdminOnly()]

    def get_queryset(self) -> QuerySet[Team]:
        return visible_teams(self.request.user)

    def create(self, request: Any) -> Response:
        """Make a team without members (administrators)."""
        values = self.body()
        return self.made(lambda: create_team(**values, **self.by))

    def partial_update(self, request: Any, team_id: str) -> Response:
        """Rename a team, or say whether its texts may leave (its leads, administrators)."""
        team, values = self._managed(), self.body()
        if "name" in values and values["name"] != team.name:
            seen = values.get("seen", {}).get("name", team.name)
            rename_team(team=team, name=values["name"], seen=seen, **self.by)
        if "language_model" in values:
            allow_language_model(team=team, allowed=values["language_model"], **self.by)
        return self.tell(self.row_of_key(team.pk))

    def destroy(self, request: Any, team_id: str) -> Response:
        """Dissolve a team; refused while jobs of it have not ended (administrators)."""
        delete_team(team=self.get_object(), **self.by)
        return Response(status=204)

    @action(detail=True, methods=["post"], url_path="members")
    def add_member(self, request: Any, team_id: str) -> Response:
        """Take a person into the team (its leads, administrators)."""
        team, values = self._managed(), self.body()
        username, role = username_called(values["user"]), Role(values["role"])
        join = in_one_transaction(lambda: add_member(team=team, username=username, role=role, **self.by))
        try:
            create(self.request, make=join, load=lambda key: members(team).get(pk=key))
        except InvalidValue as wrong:
            raise InvalidValue("user", str(wrong)) from wrong  # as the body names it
        return self.tell(self.row_of_key(team.pk), status=201)

    @action(detail=True, methods=["patch"], url_path="members/<str:user_id>")
    def change_member(self, request: Any, team_id: str, user_id: str) -> Response:
        """Change what a member may do (leads, administrators)."""
        team, values = self._managed(), self.body()
        member = self._member(team, user_id)
        if (role := values.get("role", member.role)) != member.role or "seen" in values:
            seen = Role(values.get("seen", member.role))
            change_role(membership=member, role=Role(role), seen=seen, **self.by)
        return self.tell(self.row_of_key(team.pk))

    @change_member.mapping.delete
    def remove_member(self, request: Any, team_id: str, user_id: str) -> Response:
        """Take a person out of the team (leads, administrators)."""
        team = self._managed()
        remove_member(membership=self._member(team, user_id), **self.by)
        return Response(status=204)

    @action(detail=True)
    def quotas(self, request: Any, team_id: str) -> Response:
        """The team's guarantees, for its members and administrators."""
        return Response(quotas_told(self.get_object()))

    @quotas.mapping.put
    def set_quotas(self, request: Any, team_id: str) -> Response:
        """Set all quotas of a team: those that are not named end (administrators)."""
        team = self.get_object()
        set_quotas(team=team, quotas=quota_values(self.body()), **self.by)
        return Response(quotas_told(team))

    @action(detail=True)
    def usage(self, request: Any, team_id: str) -> Response:
        """GPU time that the team was guaranteed, used, lent and borrowed in a period."""
        team = self.get_object()
        period = read_period(self.parameters, usual=USUAL, now=self.now)
        content = {
            "since": period.start,
            "until": period.end,
            "usage": team_usage(team, period, self.now),
        }
        return Response(UsageOut(content).data)

    def _managed(self) -> Team:
        """The team, which leads may change, and administrators with full rights."""
        team: Team = self.get_object()
        if not AdminOnly().has_permission(self.request, self) and not is_lead(self.request.user, team):
            raise PermissionDenied("Only the team's leads and administrators with full rights may do this.")
        return team

    def _member(self, team: Team, user: str) -> Membership:
        member = member_called(team, user)
        if member is None:
            raise NotFound("There is no such member of the team.")
        return member
