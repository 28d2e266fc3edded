"""Executions, from which the predictions are learnt.

They are listed a page at a time or exported all as a CSV.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django_filters.rest_framework import FilterSet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from knowledge.core.data.sources import generic
from knowledge.core.data.sources.registry import SOURCES
from knowledge.importing.service import ImportReport
from knowledge.models import CONFIG_SETTINGS, Execution, Status
from knowledge.selectors import executions_of_logs, exported
from knowledge.services import confirm_log
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import ChoiceField, StrictSerializer
from portal.api.common.filters import TextFilter, WordFilter
from portal.api.common.ids import IdField
from portal.api.common.views import AdminApi, AnyAccept
from portal.api.common.viewsets import AdminWrites
from portal.api.jobs.files import uploaded
from portal.limits.bodies import HISTORIES
from scheduler.selectors.executions import visible_executions
from scheduler.services.history import import_upload


class ExecutionOut(serializers.ModelSerializer[Execution]):
    id = IdField(Execution)
    model_name = serializers.SerializerMethodField()

    class Meta:
        model = Execution
        exclude = ["row_digest", "config_hash", "settings", "kept_by"]

    def get_fields(self) -> dict[str, Any]:
        """Add a field for each setting without a column of its own.

        It is null where the setting is unknown.
        """
        others = {
            name: serializers.JSONField(source=f"settings.{name}", read_only=True, default=None)
            for name in CONFIG_SETTINGS
        }
        return {**super().get_fields(), **others}

    def get_model_name(self, row: Execution) -> str:
        """Return the model's name, or a folder's name alone if it is another portal's.

        The path would say too much about that portal's machine.
        """
        foreign = row.attempt_id is None and row.model_name.startswith("/")
        return PurePosixPath(row.model_name).name if foreign else row.model_name


class ExportQuery(StrictSerializer):
    own = serializers.BooleanField(default=False, help_text="Only executions measured in this portal.")


class ExecutionFilter(FilterSet):
    model = TextFilter(field_name="model_name", max_length=300, help_text="The whole name of the base model.")
    gpu_model = TextFilter(max_length=100, help_text="The whole name, as nodes have it.")
    status = WordFilter(Status.values)
    source = TextFilter(max_length=60, help_text="`own`, or where it was imported from.")


class ImportQuery(StrictSerializer):
    source = ChoiceField(  # type: ignore[assignment]  # a query parameter, not a field's source
        choices=list(SOURCES), required=False, help_text="Format of the columns; detected if left out."
    )


class ImportOut(serializers.Serializer[ImportReport]):
    rows = serializers.IntegerField(help_text="Read.")
    added = serializers.IntegerField(help_text="Rows that were not present before.")
    refused = serializers.IntegerField(help_text="Rows that break a launch rule.")
    flagged = serializers.IntegerField(help_text="Implausible rows: kept, but not used for training.")
    unknown_models = serializers.ListField(child=serializers.CharField())


class TableUpload(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="CSV in UTF-8, 20 MB and 40,000 lines at most.")


class Executions(ListModelMixin, RetrieveModelMixin, AdminWrites):
    """What runs took, here and elsewhere: what predictions are learnt from."""

    noun, is_named = "execution", False
    about = {
        "list": "Executions of your jobs, your teams' jobs and imported ones, newest first.",
        "retrieve": "One execution.",
    }
    serializer_class = ExecutionOut
    queryset = Execution.objects.none()
    lookup_url_kwarg = "execution_id"
    filterset_class = ExecutionFilter
    query = {"add_past": ImportQuery}
    takes = {"add_past": TableUpload}
    tells = {"add_past": ImportOut}
    orders = {"created_at": "created_at", "tokens_per_second": "tokens_per_second"}

    def get_queryset(self) -> QuerySet[Execution]:
        return visible_executions(self.request.user)

    @action(
        detail=False,
        methods=["post"],
        url_path="import",
        parser_classes=[MultiPartParser],
        takes_files=HISTORIES,
    )
    def add_past(self, request: ApiRequest) -> Response:
        """Import a CSV of past executions, all rows or none.

        The same file twice adds nothing.
        """
        upload = uploaded(request)
        report = import_upload(
            stream=cast(BinaryIO, upload.file), filename=upload.name or "", **self.by, **self.parameters
        )
        return self.tell(report)

    @action(detail=True, methods=["post"])
    def confirm(self, request: Any, execution_id: str) -> Response:
        """Learn from a kept log: its configuration is right (administrators)."""
        execution = self.row_named(executions_of_logs(), execution_id, "execution from a log")
        return self.tell(confirm_log(execution=execution, **self.by))


class ExecutionsCsvApi(AdminApi):
    query = {"get": ExportQuery}
    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="executions_export",
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: ApiRequest) -> StreamingHttpResponse:
        """Return all executions, oldest first, as a CSV (administrators).

        An import takes it back. Models in folders are named by the folder alone; nobody's ids are
        included.
        """
        query = self.parameters
        answer = StreamingHttpResponse(
            generic.lines(exported(**query)), content_type="text/csv; charset=utf-8"
        )
        answer["Content-Disposition"] = 'attachment; filename="executions.csv"'
        return answer
