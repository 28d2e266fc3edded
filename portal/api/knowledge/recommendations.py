"""Recommendations, and whether a configuration fits."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from knowledge.recommendations.recommendation_json import changes_json, recommendation_json, step_s
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import ChoiceField, CurrencyField, StrictSerializer, StrictText
from portal.api.common.views import StrictView
from portal.api.jobs.requests import JobIn, job_body, with_objects
from portal.api.jobs.resources import ChoiceOut, PromiseOut
from portal.api.jobs.terms import Params
from portal.clock import database_now
from scheduler.services.jobs.plans import plan_job
from scheduler.services.jobs.recommend import check, current_recommender
from trainer.recipes import DEFAULT_RECIPE, RECIPES


class OptionOut(PromiseOut):
    """One way to run the job, and what is predicted for it."""

    config = serializers.JSONField()
    step_s = serializers.FloatField(allow_null=True, help_text="Duration of one optimiser step on all GPUs.")


class ChangeOut(serializers.Serializer[Any]):
    """A value as it is, and the one to which it would change."""

    def get_fields(self) -> dict[str, Any]:
        return {name: serializers.JSONField() for name in ("from", "to")}


class MemorySavingOut(serializers.Serializer[Any]):
    changes = serializers.DictField(child=ChangeOut(), help_text="By parameter.")
    saved_bytes = serializers.FloatField(help_text="Peak bytes of one GPU that the changes save.")


class ConstantOut(serializers.Serializer[Any]):
    """A setting that nobody chooses."""

    value = serializers.JSONField()
    help = serializers.CharField()


class RecommendedOut(serializers.Serializer[Any]):
    """What is recommended for a job, and what would be promised."""

    params = serializers.DictField(child=ChoiceOut())
    constants = serializers.DictField(
        child=ConstantOut(), help_text="Settings that nobody chooses: the same in every training."
    )
    options = OptionOut(many=True, help_text="Best first; empty while no node could run the job.")
    pareto = serializers.ListField(
        child=serializers.CharField(),
        help_text="Options (GPU:nodes x GPUs each) that no other beats in time and cost, fastest first.",
    )
    memory_parts = serializers.DictField(
        child=serializers.FloatField(),
        help_text="Peak bytes of one GPU for the first option, by component.",
    )
    memory_savings = MemorySavingOut(
        many=True, help_text="Single changes of the first option that save memory, the largest saving first."
    )
    evidence = serializers.JSONField(help_text="The most similar measured executions.")
    notes = serializers.ListField(child=serializers.CharField())
    trade = serializers.CharField(help_text="The first option against the second; empty without one.")
    currency = CurrencyField()
    predictor_version = serializers.IntegerField(allow_null=True)


class RecommendationOut(RecommendedOut):
    """A recommendation that is kept."""

    plan = serializers.CharField(
        help_text="Send it to `jobs/` within 24 hours: exactly these parameters, and this promise."
    )


class RecommendationsApi(StrictView):
    @extend_schema(operation_id="recommendations_create", request=JobIn, responses=RecommendationOut)
    def post(self, request: ApiRequest) -> Response:
        """The recommendation for this job, with reasons; no job is made.

        Its `plan`, sent to `jobs/` within a day, submits exactly what is recommended and promised here.
        """
        found = plan_job(owner=request.user, now=database_now(), **job_body(request))
        shown = {**recommendation_json(found.recommendation), "plan": found.plan.pk}
        return Response(RecommendationOut(shown).data)


class CheckIn(StrictSerializer):
    model = StrictText(max_length=300)
    training_file = StrictText(max_length=64, help_text="Id of an uploaded file.")
    validation_file = StrictText(max_length=64, required=False, allow_null=True)
    recipe = ChoiceField(choices=list(RECIPES), default=DEFAULT_RECIPE.name)
    params = Params(default=dict, help_text="The configuration; open parameters are chosen so that it fits.")


class CheckOut(serializers.Serializer[Any]):
    fits = serializers.BooleanField()
    reason = serializers.CharField()
    changes = serializers.DictField(
        child=ChangeOut(), help_text="The smallest changes that make it fit, by parameter."
    )
    option = OptionOut(allow_null=True, help_text="How it would run, after the changes.")


class CheckApi(StrictView):
    @extend_schema(operation_id="recommendations_check", request=CheckIn, responses=CheckOut)
    def post(self, request: ApiRequest) -> Response:
        """Check whether this configuration fits the nodes.

        If it does not, the answer has the smallest change that makes it fit.
        """
        data = CheckIn(data=request.data)
        data.is_valid(raise_exception=True)
        values = with_objects(user=request.user, values=data.validated_data)
        found = check(recommender=current_recommender(), **values)
        content = {
            "fits": found.fits,
            "reason": found.reason,
            "changes": changes_json(found.changes),
            "option": {**found.option.as_json(), "step_s": step_s(found.option)} if found.option else None,
        }
        return Response(CheckOut(content).data)
