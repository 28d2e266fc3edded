"""Calibrations of nodes, for administrators.

They are short real trainings that workers submit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from knowledge.models import Execution
from portal.api.common.fields import Number, StrictSerializer, StrictText, WholeNumber, Word
from portal.api.common.refs import UserRef
from portal.api.common.viewsets import AdminResource
from scheduler.models import Calibration, Node
from scheduler.selectors.cluster.calibrations import calibrations, measured
from scheduler.selectors.nodes import all_nodes
from scheduler.services.calibration.request import (
    MAX_BUDGET_S,
    MAX_MODELS,
    MAX_RUNS,
    USUAL_RUNS,
    CalibrationRequest,
    cancel_calibration,
    request_calibration,
)
from scheduler.states import CalibrationState


class CalibrationIn(StrictSerializer):
    budget_s = Number(
        min_value=1, max_value=MAX_BUDGET_S, default=1200.0,
        help_text="Time limit in seconds; runs that are unfinished by then are cancelled.",
    )  # fmt: skip
    models = serializers.ListField(
        child=StrictText(max_length=300), max_length=MAX_MODELS, default=list,
        help_text="Models to train, e.g. random/llama3.2-1b; empty: models that suit the GPU.",
    )  # fmt: skip
    runs = WholeNumber(
        min_value=1, max_value=MAX_RUNS, default=USUAL_RUNS, help_text="Maximum number of runs."
    )


class CalibrationBrief(serializers.ModelSerializer[Calibration]):
    state = Word(CalibrationState)
    actor = UserRef(source="requested_by", help_text="Who asked for it.")
    created_at = serializers.DateTimeField(source="requested_at")
    models = serializers.ListField(source="wanted_models", child=serializers.CharField())
    planned = serializers.SerializerMethodField(help_text="Planned number of runs, if time permits.")
    submitted = serializers.IntegerField()
    ended = serializers.IntegerField(help_text="Number of submitted runs that have ended.")
    judged_runs = serializers.IntegerField(help_text="Judged runs, each predicted from dissimilar runs only.")
    error_before = serializers.FloatField(
        allow_null=True,
        help_text="Median |ln measured/predicted| of the rates, predicted without these runs.",
    )
    error_after = serializers.FloatField(
        allow_null=True,
        help_text="The same, predicted with all other runs.",
    )

    class Meta:
        model = Calibration
        fields = [
            *("id", "state", "reason", "actor", "created_at", "until", "ended_at", "models"),
            *("planned", "submitted", "ended", "judged_runs", "error_before", "error_after"),
        ]

    def get_planned(self, calibration: Calibration) -> int:
        return len(calibration.plan)


class RunOut(serializers.ModelSerializer[Execution]):
    class Meta:
        model = Execution
        fields = [
            *("model_name", "tuning", "tokens_per_sample", "per_device_batch_size", "gradient_checkpointing"),
            *("status", "tokens_per_second", "peak_memory_fraction"),
        ]


class CalibrationOut(CalibrationBrief):
    measured = serializers.SerializerMethodField(help_text="The runs that ended, oldest first.")

    class Meta(CalibrationBrief.Meta):
        fields = [*CalibrationBrief.Meta.fields, "measured"]

    @extend_schema_field(RunOut(many=True))
    def get_measured(self, calibration: Calibration) -> list[Any]:
        return list(RunOut(measured(calibration)[:MAX_RUNS], many=True).data)


class Calibrations(ListModelMixin, RetrieveModelMixin, AdminResource):
    """Short trainings that measure a node where predictions are least certain."""

    noun, is_named = "calibration of this node", False
    moving = frozenset({"submitted", "ended", "judged_runs", "error_before", "error_after", "measured"})
    about = {
        "list": "The node's calibrations, newest first, without their runs.",
        "retrieve": "One calibration with what it measured so far.",
    }
    serializer_class = CalibrationOut
    queryset = Calibration.objects.none()
    lookup_url_kwarg = "calibration_id"
    takes = {"create": CalibrationIn}
    tells = {"list": CalibrationBrief}
    orders = {"created_at": "requested_at", "ended_at": "ended_at"}

    @cached_property
    def node(self) -> Node:
        return self.row_named(all_nodes(), self.kwargs["node_id"], "node")

    def get_queryset(self) -> QuerySet[Calibration]:
        return calibrations(self.node)

    def create(self, request: Any, node_id: str) -> Response:
        """Measure the node where predictions are least certain.

        Workers submit the runs, one by one.
        """
        wanted = CalibrationRequest(**self.body())
        ask = partial(request_calibration, node=self.node, wanted=wanted, **self.by)
        return self.made_by(lambda creation: ask(creation=creation))

    @action(detail=True, methods=["post"])
    def cancel(self, request: Any, node_id: str, calibration_id: str) -> Response:
        """Submit no further run and cancel those that have not ended.

        Measured runs count.
        """
        calibration = cancel_calibration(calibration=self.get_object(), **self.by)
        return self.tell(self.row_of_key(calibration.pk))
