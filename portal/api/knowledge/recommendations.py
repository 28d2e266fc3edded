"""Recommendations and predictor versions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.advice_json import advice_json, step_s
from knowledge.model_registry import promote_version, roll_back
from knowledge.models import PredictorVersion
from knowledge.selectors import predictor_versions
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, StrictText, WholeNumber
from portal.api.common.pages import list_of
from portal.api.common.views import AdminApi
from portal.api.jobs.requests import JobIn, Params, with_files
from portal.api.jobs.resources import ChoiceOut, PromiseOut
from portal.clock import database_now
from scheduler.services.jobs.advice import check, current_recommender, recommend

USED = ("model", "training_file", "validation_file", "params", "goal", "deadline_at", "budget")


class OptionOut(PromiseOut):
    """One way to run the job, and what is foretold for it."""

    config = serializers.JSONField()
    step_s = serializers.FloatField(allow_null=True, help_text="Of one optimiser step on all GPUs.")


class AdviceOut(serializers.Serializer[Any]):
    params = serializers.DictField(child=ChoiceOut())
    options = OptionOut(many=True, help_text="Best first; empty while no node could run the job.")
    pareto = serializers.ListField(
        child=serializers.CharField(),
        help_text="Places (GPU:nodes x GPUs of each) that none beats in both time and cost, fastest first.",
    )
    memory_parts = serializers.DictField(
        child=serializers.FloatField(),
        help_text="Of the first option: bytes of one GPU at the peak by what holds them.",
    )
    evidence = serializers.JSONField(help_text="The nearest measured executions.")
    notes = serializers.ListField(child=serializers.CharField())
    predictor_version = serializers.IntegerField(allow_null=True)


class PredictorOut(serializers.ModelSerializer[PredictorVersion]):
    class Meta:
        model = PredictorVersion
        fields = ["number", "active", "rows", "metrics", "reason", "created_at", "promoted_at"]


class RecommendationsApi(APIView):
    @extend_schema(operation_id="recommendations_create", request=JobIn, responses=AdviceOut)
    def post(self, request: ApiRequest) -> Response:
        """The recommendation for this job, with reasons; nothing is stored."""
        data = JobIn(data=request.data)
        data.is_valid(raise_exception=True)
        values = with_files(user=request.user, values=data.validated_data)
        asked = {name: values[name] for name in USED if name in values}
        advice = recommend(recommender=current_recommender(), **asked, now=database_now())
        return Response(AdviceOut(advice_json(advice)).data)


class ChangeOut(serializers.Serializer[Any]):
    """A value that was fixed, and the one that makes the configuration fit."""

    def get_fields(self) -> dict[str, Any]:
        return {name: serializers.JSONField() for name in ("from", "to")}


class CheckIn(StrictSerializer):
    model = StrictText(max_length=300)
    training_file = StrictText(max_length=64, help_text="Id of an uploaded file.")
    validation_file = StrictText(max_length=64, required=False, allow_null=True)
    params = Params(
        default=dict, help_text="The configuration: what it leaves out is chosen so that it fits."
    )


class CheckOut(serializers.Serializer[Any]):
    fits = serializers.BooleanField()
    reason = serializers.CharField()
    changes = serializers.DictField(child=ChangeOut(), help_text="The smallest that make it fit; by name.")
    option = OptionOut(allow_null=True, help_text="How it would run, after the changes.")


class CheckApi(APIView):
    @extend_schema(operation_id="recommendations_check", request=CheckIn, responses=CheckOut)
    def post(self, request: ApiRequest) -> Response:
        """Does this configuration fit the nodes, and if not, which smallest change makes it fit?"""
        data = CheckIn(data=request.data)
        data.is_valid(raise_exception=True)
        values = with_files(user=request.user, values=data.validated_data)
        found = check(recommender=current_recommender(), **values)
        told = {
            "fits": found.fits,
            "reason": found.reason,
            "changes": {name: {"from": old, "to": new} for name, (old, new) in found.changes.items()},
            "option": {**found.option.as_json(), "step_s": step_s(found.option)} if found.option else None,
        }
        return Response(CheckOut(told).data)


class RollBackIn(StrictSerializer):
    seen = WholeNumber(
        min_value=1, required=False, help_text="The active version you saw: if another one is, 409."
    )


class PredictorsApi(APIView):
    @extend_schema(operation_id="predictors_list", responses=list_of(PredictorOut))
    def get(self, request: ApiRequest) -> Response:
        """Trained predictors, newest first, and why each was promoted or not."""
        return Response({"data": PredictorOut(predictor_versions()[:100], many=True).data})


class PromoteApi(AdminApi):
    @extend_schema(operation_id="predictors_promote", request=None, responses=PredictorOut)
    def post(self, request: ApiRequest, number: int) -> Response:
        """Let a version answer from now on, whatever its measured errors (administrators)."""
        version = promote_version(number=number, actor=request.user, now=database_now())
        return Response(PredictorOut(version).data)


class RollBackApi(AdminApi):
    @extend_schema(operation_id="predictors_roll_back", request=RollBackIn, responses=PredictorOut)
    def post(self, request: ApiRequest) -> Response:
        """Undo the last promotion; doing it again goes further back (administrators)."""
        data = RollBackIn(data=request.data)
        data.is_valid(raise_exception=True)
        version = roll_back(actor=request.user, now=database_now(), **data.validated_data)
        return Response(PredictorOut(version).data)
