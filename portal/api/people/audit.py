"""The audit record, for administrators."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.models import AuditEntry
from portal.accounts.requests import ApiRequest
from portal.accounts.selectors import audit_matching, visible_audit
from portal.api.common.fields import SearchText
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import AdminApi

FILTERS = ("actor", "action", "text")


class AuditOut(serializers.ModelSerializer[AuditEntry]):
    actor = serializers.CharField(source="actor_name")

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "actor", "node", "action", "target", "data", "address"]


class AuditQuery(PageQuery):
    actor = SearchText(max_length=150, required=False, help_text="A part of the actor's name.")
    action = SearchText(max_length=60, required=False, help_text="A part of the action.")
    text = SearchText(max_length=200, required=False, help_text="A part of the object.")


AuditPage = page_of(AuditOut)


class AuditApi(AdminApi):
    query = {"get": AuditQuery}

    @extend_schema(operation_id="audit_list", responses=AuditPage)
    def get(self, request: ApiRequest) -> Response:
        """The record, newest first."""
        query = self.parameters
        wanted = {name: query.pop(name, "") for name in FILTERS}
        rows = audit_matching(visible_audit(request.user), **wanted)
        return Response(page(rows, AuditOut().to_representation, **query))
