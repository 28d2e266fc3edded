"""Decisions about one job: why here, why now, what else was weighed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Word
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import StrictView
from scheduler.core.decisions.news import Verb
from scheduler.core.decisions.weighed import OptionVerdict
from scheduler.core.stopping import StopReason
from scheduler.models import DecisionJob
from scheduler.selectors.decisions import decisions_of, explain
from scheduler.selectors.jobs import get_job
from scheduler.states import WaitState

# Why a job waits, or was stopped.
DECISION_CODES = [*WaitState, *StopReason]


class WeighedOptionOut(serializers.Serializer[Any]):
    gpu_model = serializers.CharField(source="option.gpu_model")
    gpus = serializers.IntegerField(source="option.gpus")
    nodes = serializers.IntegerField(source="option.nodes")
    duration_s = serializers.FloatField(source="option.duration_s.value")
    cost = serializers.FloatField(source="option.cost.value")
    fate = Word(
        OptionVerdict,
        help_text="chosen; passed: there was room, but another one was chosen or others go first; full: GPUs"
        " were missing; worse: so much worse than the best that the job rather waits; nowhere: no ready node"
        " could hold it",
    )
    score = serializers.FloatField(
        allow_null=True, help_text="By the job's goal, as a multiple of the best that ready nodes could hold."
    )
    program_cost = serializers.FloatField(
        allow_null=True, help_text="What the policy's own program counted for it, if it has one."
    )
    free = serializers.IntegerField(help_text="GPUs on which it could run and that the job found free.")
    lacks = serializers.IntegerField(help_text="GPUs that were missing.")


class DecisionOut(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="As manage.py replay_decision takes it.")
    at = serializers.DateTimeField()
    policy = serializers.CharField()
    parameters = serializers.JSONField(help_text="Those that differ from the policy's defaults.")
    predictor_version = serializers.IntegerField(allow_null=True)
    verb = Word(Verb)
    code = Word(DECISION_CODES, allow_blank=True, help_text="Why it waits, or was stopped; empty if it runs.")
    here = serializers.CharField(help_text="Why on these GPUs, or why not.")
    now = serializers.CharField(help_text="Why at that moment.")
    options = WeighedOptionOut(many=True)
    unreadable = serializers.CharField(help_text="Why nothing can be told of it; empty where it can.")


class DecisionsApi(StrictView):
    query = {"get": PageQuery}

    @extend_schema(operation_id="jobs_decisions", responses=page_of(DecisionOut))
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """The policy's decisions about the job, newest first.

        Each says why here, why now, and what else was weighed.
        """
        rows = decisions_of(get_job(request.user, job_id))
        return Response(page(rows, _shown, **self.parameters))


def _shown(row: DecisionJob) -> dict[str, Any]:
    found = explain(row)
    return DecisionOut(
        {
            "id": row.decision_id,
            "at": row.decision.at,
            "policy": row.decision.policy,
            "parameters": row.decision.parameters,
            "predictor_version": row.decision.predictor_version,
            "verb": row.verb,
            "code": row.code,
            "here": found.summary.here,
            "now": found.summary.now,
            "options": found.options,
            "unreadable": found.unreadable,
        }
    ).data
