"""The audit record, for administrators."""

from __future__ import annotations

from django.db.models import QuerySet
from django_filters.rest_framework import FilterSet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin

from portal.accounts.models import AuditEntry, User
from portal.accounts.selectors import audit_matching, visible_audit
from portal.api.common.filters import TextFilter
from portal.api.common.ids import IdField, public_id
from portal.api.common.viewsets import AdminResource


class ActorOut(serializers.ModelSerializer[AuditEntry]):
    """Who did it; the name stays when the person is deleted, the id is then null."""

    id = serializers.SerializerMethodField(allow_null=True)
    name = serializers.CharField(source="actor_name")

    class Meta:
        model = AuditEntry
        fields = ["id", "name"]

    def get_id(self, entry: AuditEntry) -> str | None:
        return public_id(User, entry.actor_id) if entry.actor_id else None


class AuditOut(serializers.ModelSerializer[AuditEntry]):
    id = IdField(AuditEntry)
    actor = serializers.SerializerMethodField(help_text="Null where a node or the portal itself did it.")

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "actor", "node", "action", "target", "data", "address"]

    @extend_schema_field(ActorOut(allow_null=True))
    def get_actor(self, entry: AuditEntry) -> object:
        return ActorOut(entry).data if entry.actor_name else None


class AuditFilter(FilterSet):
    actor = TextFilter(max_length=150, help_text="A part of the name of the person or node.")
    action = TextFilter(max_length=60, help_text="A part of the action.")
    text = TextFilter(max_length=200, help_text="A part of the object.")

    def filter_queryset(self, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        return audit_matching(queryset, **self.form.cleaned_data)


class Audit(ListModelMixin, AdminResource):
    """Who did what."""

    noun, is_named = "entry", False
    about = {"list": "The record, newest first."}
    serializer_class = AuditOut
    queryset = AuditEntry.objects.none()
    filterset_class = AuditFilter

    def get_queryset(self) -> QuerySet[AuditEntry]:
        return visible_audit(self.request.user)
