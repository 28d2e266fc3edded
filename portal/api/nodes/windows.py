"""Maintenance windows and reservations of nodes."""

from __future__ import annotations

from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Name, StrictSerializer, StrictText, ZonedDateTime
from portal.api.common.idempotent import KEY, create, in_one_transaction
from portal.api.common.pages import PageQuery, page, page_of, read_query
from portal.api.common.views import AdminApi, AdminWritesApi
from portal.clock import database_now
from scheduler.models import MaintenanceWindow
from scheduler.selectors.cluster.windows import get_window, known_teams, team_shown, windows_until_now
from scheduler.services.windows import LONGEST_NOTE, MOST_NODES, WindowValues, add_window, remove_window


class WindowIn(StrictSerializer):
    begins_at = ZonedDateTime()
    ends_at = ZonedDateTime()
    nodes = serializers.ListField(child=StrictText(max_length=100), max_length=MOST_NODES, help_text="Ids.")
    team = Name(
        max_length=100, allow_blank=True, default="",
        help_text="The name of the team whose jobs may use the nodes; empty: nobody's may.",
    )  # fmt: skip
    note = StrictText(max_length=LONGEST_NOTE, allow_blank=True, default="", help_text="For owners of jobs.")


class WindowOut(serializers.ModelSerializer[MaintenanceWindow]):
    nodes = serializers.SerializerMethodField()
    team = serializers.SerializerMethodField(
        help_text="Empty: nobody's jobs may use the nodes. `another team`: one that is not yours."
    )
    author = serializers.CharField(source="author.username", default="")

    class Meta:
        model = MaintenanceWindow
        fields = ["id", "begins_at", "ends_at", "nodes", "team", "note", "author"]

    def get_nodes(self, window: MaintenanceWindow) -> list[str]:
        return [node.pk for node in window.nodes.all()]

    def get_team(self, window: MaintenanceWindow) -> str:
        return team_shown(window, self.context["known"])


WindowPage = page_of(WindowOut)


class WindowsApi(AdminWritesApi):
    @extend_schema(operation_id="windows_list", parameters=[PageQuery], responses=WindowPage)
    def get(self, request: ApiRequest) -> Response:
        """The windows that have not ended."""
        query = read_query(PageQuery, request.query_params)
        shown = partial(_shown, known_teams(request.user))
        return Response(page(windows_until_now(database_now()), shown, **query))

    @extend_schema(
        operation_id="windows_create", parameters=[KEY], request=WindowIn, responses={201: WindowOut}
    )
    def post(self, request: ApiRequest) -> Response:
        """Close nodes during a time, to everybody or to all but one team (administrators)."""
        data = WindowIn(data=request.data)
        data.is_valid(raise_exception=True)
        values = WindowValues(**data.validated_data)
        make = partial(add_window, values=values, actor=request.user, now=database_now())
        made, _ = create(request, make=in_one_transaction(make), load=lambda pk: get_window(int(pk)))
        return Response(_shown(known_teams(request.user), made), status=201)


class WindowApi(AdminApi):
    @extend_schema(operation_id="windows_remove", request=None, responses={204: None})
    def delete(self, request: ApiRequest, window_id: int) -> Response:
        """Open the nodes again, or do not close them (administrators)."""
        remove_window(window=get_window(window_id), actor=request.user, now=database_now())
        return Response(status=204)


def _shown(known: frozenset[int], window: MaintenanceWindow) -> Any:
    return WindowOut(window, context={"known": known}).data
