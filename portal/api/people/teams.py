"""The API of teams.

Everyone sees their own; administrators make and delete them, leads run them too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import Membership, Role, Team
from portal.accounts.permissions import AdminOnly
from portal.accounts.requests import ApiRequest
from portal.accounts.selectors import members, visible_teams
from portal.accounts.teams import (
    add_member,
    allow_language_model,
    change_role,
    create_team,
    is_lead,
    remove_member,
    rename_team,
)
from portal.api.common.fields import ChoiceField, Name, StrictBoolean, StrictSerializer, StrictText
from portal.api.common.idempotent import KEY, create, in_one_transaction
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import AdminApi, AdminWritesApi, StrictView
from portal.clock import database_now
from scheduler.errors import NotFound
from scheduler.services.deletions import delete_team


class TeamBrief(serializers.ModelSerializer[Team]):
    """A row of the list."""

    size = serializers.IntegerField(help_text="Number of members.")

    class Meta:
        model = Team
        fields = ["id", "name", "size", "created_at", "language_model"]


class MemberOut(serializers.ModelSerializer[Membership]):
    username = serializers.CharField(source="user.username")

    class Meta:
        model = Membership
        fields = ["id", "username", "role"]


class TeamOut(TeamBrief):
    members = serializers.SerializerMethodField()

    class Meta(TeamBrief.Meta):
        fields = [*TeamBrief.Meta.fields, "members"]

    @extend_schema_field(MemberOut(many=True))
    def get_members(self, team: Team) -> Any:
        return MemberOut(members(team), many=True).data


class TeamIn(StrictSerializer):
    name = Name(max_length=100)


class RenameIn(TeamIn):
    seen = StrictText(
        max_length=100, help_text="The name you saw; if it has changed since, the answer is 409."
    )


class LanguageModelIn(StrictSerializer):
    allowed = StrictBoolean()


class MemberIn(StrictSerializer):
    username = Name(max_length=150)
    role = ChoiceField(choices=Role.choices, default=Role.MEMBER)


class RoleIn(StrictSerializer):
    role = ChoiceField(choices=Role.choices)
    seen = StrictText(
        max_length=10, help_text="The role you saw; if it has changed since, the answer is 409."
    )


TeamPage = page_of(TeamBrief)


def _team(request: ApiRequest, team_id: int) -> Team:
    found = visible_teams(request.user).filter(pk=team_id).first()
    if found is None:
        raise NotFound("There is no such team of yours.")
    return found


def _managed(request: ApiRequest, view: APIView, team_id: int) -> Team:
    """Return a team that the request may change.

    Leads may change their team, administrators with full rights any team.
    """
    team = _team(request, team_id)
    if not AdminOnly().has_permission(request, view) and not is_lead(request.user, team):
        raise PermissionDenied("Only the team's leads and administrators with full rights may do this.")
    return team


def _shown(request: ApiRequest, team: Team, status: int = 200) -> Response:
    return Response(TeamOut(_team(request, team.pk)).data, status=status)


class TeamsApi(AdminWritesApi):
    query = {"get": PageQuery}

    @extend_schema(operation_id="teams_list", responses=TeamPage)
    def get(self, request: ApiRequest) -> Response:
        """Your teams, newest first; all of them for administrators."""
        query = self.parameters
        return Response(page(visible_teams(request.user), TeamBrief().to_representation, **query))

    @extend_schema(operation_id="teams_create", parameters=[KEY], request=TeamIn, responses={201: TeamOut})
    def post(self, request: ApiRequest) -> Response:
        """A new team without members (administrators)."""
        data = TeamIn(data=request.data)
        data.is_valid(raise_exception=True)
        make = partial(create_team, actor=request.user, now=database_now(), **data.validated_data)
        load = partial(_by_key, request)
        team, _ = create(request, make=in_one_transaction(make), load=load)
        return _shown(request, team, status=201)


def _by_key(request: ApiRequest, team_id: str) -> Team:
    return _team(request, int(team_id))


class TeamApi(StrictView):
    @extend_schema(operation_id="teams_retrieve", responses=TeamOut)
    def get(self, request: ApiRequest, team_id: int) -> Response:
        """One team with its members, leads first."""
        return _shown(request, _team(request, team_id))


class RenameApi(StrictView):
    @extend_schema(operation_id="teams_rename", request=RenameIn, responses=TeamOut)
    def post(self, request: ApiRequest, team_id: int) -> Response:
        """Rename a team (its leads, administrators)."""
        team, data = _managed(request, self, team_id), RenameIn(data=request.data)
        data.is_valid(raise_exception=True)
        rename_team(team=team, actor=request.user, now=database_now(), **data.validated_data)
        return _shown(request, team)


class LanguageModelApi(StrictView):
    @extend_schema(operation_id="teams_language_model", request=LanguageModelIn, responses=TeamOut)
    def post(self, request: ApiRequest, team_id: int) -> Response:
        """Say whether members' texts may be sent to a language model (leads)."""
        team, data = _managed(request, self, team_id), LanguageModelIn(data=request.data)
        data.is_valid(raise_exception=True)
        allow_language_model(team=team, actor=request.user, now=database_now(), **data.validated_data)
        return _shown(request, team)


class DeleteTeamApi(AdminApi):
    @extend_schema(operation_id="teams_delete", request=None, responses={204: None})
    def post(self, request: ApiRequest, team_id: int) -> Response:
        """Dissolve a team; refused while jobs of it have not ended (administrators)."""
        delete_team(team=_team(request, team_id), actor=request.user, now=database_now())
        return Response(status=204)


class MembersApi(StrictView):
    @extend_schema(
        operation_id="members_create", parameters=[KEY], request=MemberIn, responses={201: TeamOut}
    )
    def post(self, request: ApiRequest, team_id: int) -> Response:
        """Take a person into the team (its leads, administrators)."""
        team, data = _managed(request, self, team_id), MemberIn(data=request.data)
        data.is_valid(raise_exception=True)
        said = data.validated_data
        make = partial(
            add_member,
            team=team,
            username=said["username"],
            role=Role(said["role"]),
            actor=request.user,
            now=database_now(),
        )
        create(request, make=in_one_transaction(make), load=lambda pk: members(team).get(pk=pk))
        return _shown(request, team, status=201)


class RoleApi(StrictView):
    @extend_schema(operation_id="members_role", request=RoleIn, responses=TeamOut)
    def post(self, request: ApiRequest, team_id: int, member_id: int) -> Response:
        """Change what a member may do (leads, administrators)."""
        team, data = _managed(request, self, team_id), RoleIn(data=request.data)
        data.is_valid(raise_exception=True)
        member = _member(team, member_id)
        change_role(membership=member, actor=request.user, now=database_now(), **data.validated_data)
        return _shown(request, team)


class RemoveMemberApi(StrictView):
    @extend_schema(operation_id="members_remove", request=None, responses={204: None})
    def post(self, request: ApiRequest, team_id: int, member_id: int) -> Response:
        """Take a person out of the team (leads, administrators)."""
        team = _managed(request, self, team_id)
        remove_member(membership=_member(team, member_id), actor=request.user, now=database_now())
        return Response(status=204)


def _member(team: Team, member_id: int) -> Membership:
    found = members(team).filter(pk=member_id).first()
    if found is None:
        raise NotFound("There is no such member of the team.")
    return found
