"""Maintenance windows and reservations of nodes."""

from __future__ import annotations

from typing import Any, cast

from django.db.models import QuerySet
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from portal.accounts.selectors import visible_teams
from portal.api.common.fields import StrictSerializer, StrictText, ZonedDateTime
from portal.api.common.ids import IdField, RowField
from portal.api.common.refs import TeamRef, UserRef
from portal.api.common.viewsets import AdminWrites
from scheduler.models import MaintenanceWindow
from scheduler.selectors.cluster.windows import all_windows, known_teams, windows_until_now
from scheduler.services.windows import (
    LONGEST_NOTE,
    MOST_NODES,
    WindowValues,
    add_window,
    change_window,
    remove_window,
)


class WindowIn(StrictSerializer):
    begins_at = ZonedDateTime()
    ends_at = ZonedDateTime()
    nodes = serializers.ListField(child=StrictText(max_length=100), max_length=MOST_NODES, help_text="Ids.")
    team = RowField(
        visible_teams,
        allow_null=True,
        default=None,
        help_text="Id or name of the one whose jobs may use the nodes; null: nobody's may.",
    )
    note = StrictText(max_length=LONGEST_NOTE, allow_blank=True, default="", help_text="For owners of jobs.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The values as the service takes them: the team by its name."""
        team = {"team": attrs["team"].name if attrs["team"] else ""} if "team" in attrs else {}
        nodes = {"nodes": sorted(set(attrs["nodes"]))} if "nodes" in attrs else {}
        return {**attrs, **team, **nodes}


class WindowOut(serializers.ModelSerializer[MaintenanceWindow]):
    id = IdField(MaintenanceWindow)
    nodes = serializers.SerializerMethodField()
    team = serializers.SerializerMethodField(
        help_text="Whose jobs may use the nodes; null also where the team is not yours."
    )
    reserved = serializers.SerializerMethodField(help_text="Are the nodes kept for a team?")
    actor = UserRef(source="author", allow_null=True, help_text="Who added it.")

    class Meta:
        model = MaintenanceWindow
        fields = ["id", "begins_at", "ends_at", "nodes", "team", "reserved", "note", "actor", "created_at"]

    def get_nodes(self, window: MaintenanceWindow) -> list[str]:
        return [node.pk for node in window.nodes.all()]

    @extend_schema_field(TeamRef(allow_null=True))
    def get_team(self, window: MaintenanceWindow) -> Any:
        known = cast(Windows, self.context["view"]).known
        return TeamRef(window.team).data if window.team and window.team.pk in known else None

    def get_reserved(self, window: MaintenanceWindow) -> bool:
        return window.team_id is not None


class Windows(ListModelMixin, RetrieveModelMixin, AdminWrites):
    """Times in which nodes are closed, to everybody or to all but one team.

    Everyone reads them; writing is for administrators.
    """

    noun, is_named = "window", False
    about = {"list": "The windows that have not ended.", "retrieve": "One window."}
    serializer_class = WindowOut
    queryset = all_windows()
    lookup_url_kwarg = "window_id"
    takes = {"create": WindowIn, "partial_update": WindowIn}
    orders = {"begins_at": "begins_at", "ends_at": "ends_at"}

    def get_queryset(self) -> QuerySet[MaintenanceWindow]:
        """The list has those that have not ended."""
        return windows_until_now(self.now) if self.action == "list" else all_windows()

    @cached_property
    def known(self) -> frozenset[int]:
        return known_teams(self.request.user)

    def create(self, request: Any) -> Response:
        """Close nodes during a time, to everybody or to all but one team."""
        values = WindowValues(**self.body())
        return self.made(lambda: add_window(values=values, **self.by))

    def partial_update(self, request: Any, window_id: str) -> Response:
        """Change when it is, for whom, or of which nodes."""
        window = change_window(window=self.get_object(), changes=self.body(), **self.by)
        return self.tell(window)

    def destroy(self, request: Any, window_id: str) -> Response:
        """Open the nodes again, or do not close them."""
        remove_window(window=self.get_object(), **self.by)
        return Response(status=204)
