"""Calibrations of nodes, for administrators.

They are short real trainings that workers submit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from knowledge.models import Execution
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Number, StrictSerializer, StrictText, WholeNumber
from portal.api.common.idempotent import KEY, create
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import AdminApi
from portal.clock import database_now
from scheduler.models import Calibration, Node
from scheduler.selectors.cluster.calibrations import calibrations, get_calibration, measured
from scheduler.selectors.nodes import get_node
from scheduler.services.calibration.request import (
    MAX_BUDGET_S,
    MAX_MODELS,
    MAX_RUNS,
    USUAL_RUNS,
    CalibrationRequest,
    cancel_calibration,
    request_calibration,
)


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
    state = serializers.CharField(help_text="running, stopping, done, cancelled or failed")
    requested_by = serializers.CharField()
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
            *("id", "state", "reason", "requested_by", "requested_at", "until", "ended_at", "models"),
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


CalibrationPage = page_of(CalibrationBrief)


def _answer(node: Node, calibration: Calibration, status: int = 200) -> Response:
    return Response(CalibrationOut(get_calibration(node, calibration.pk)).data, status=status)


class CalibrationsApi(AdminApi):
    query = {"get": PageQuery}

    @extend_schema(
        operation_id="calibrations_create", parameters=[KEY], request=CalibrationIn,
        responses={201: CalibrationOut},
    )  # fmt: skip
    def post(self, request: ApiRequest, node_id: str) -> Response:
        """Measure the node where predictions are least certain.

        Workers submit the runs, one by one.
        """
        node = get_node(node_id)
        data = CalibrationIn(data=request.data)
        data.is_valid(raise_exception=True)
        wanted = CalibrationRequest(**data.validated_data)
        ask = partial(request_calibration, node=node, wanted=wanted, actor=request.user, now=database_now())
        made, _ = create(
            request, make=lambda creation: ask(creation=creation), load=lambda pk: get_calibration(node, pk)
        )
        return _answer(node, made, 201)

    @extend_schema(operation_id="calibrations_list", responses=CalibrationPage)
    def get(self, request: ApiRequest, node_id: str) -> Response:
        """The node's calibrations, newest first, without their runs."""
        query = self.parameters
        rows = calibrations(get_node(node_id))
        return Response(page(rows, CalibrationBrief().to_representation, **query))


class CalibrationApi(AdminApi):
    @extend_schema(operation_id="calibrations_retrieve", responses=CalibrationOut)
    def get(self, request: ApiRequest, node_id: str, calibration_id: str) -> Response:
        """One calibration with what it measured so far."""
        node = get_node(node_id)
        return _answer(node, get_calibration(node, calibration_id))


class CancelCalibrationApi(AdminApi):
    @extend_schema(operation_id="calibrations_cancel", request=None, responses=CalibrationOut)
    def post(self, request: ApiRequest, node_id: str, calibration_id: str) -> Response:
        """Submit no further run and cancel those that have not ended.

        Measured runs count.
        """
        node = get_node(node_id)
        found = get_calibration(node, calibration_id)
        return _answer(node, cancel_calibration(calibration=found, actor=request.user, now=database_now()))
