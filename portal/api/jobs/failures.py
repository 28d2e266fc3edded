"""Why a job failed and what helps; questions about its log."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from knowledge.reading.failures.explaining import Explanation
from knowledge.reading.logs.questions import LONGEST_QUESTION, TOPICS
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import SearchText, StrictSerializer, Word
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.selectors.analysis.failures import explained
from scheduler.selectors.jobs import get_job
from scheduler.services.explanations.questions import answered
from scheduler.states import FAILURE_CLASSES


class LogLineOut(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="In the whole log, from 1; 0: reported apart from the log.")
    text = serializers.CharField()


class ExplanationOut(serializers.Serializer[Explanation]):
    cause = serializers.CharField(source="cause.name", help_text="Its short name, such as gpu-memory.")
    failure_class = Word(
        FAILURE_CLASSES,
        source="cause.blame.value",
        allow_blank=True,
        help_text="Empty where no cause was found.",
    )
    sentence = serializers.CharField()
    line = LogLineOut(allow_null=True, help_text="The line that tells it.")
    unusual = LogLineOut(
        many=True, help_text="Without a cause: lines that your runs that succeeded do not have."
    )
    remedy = serializers.CharField()
    changes = serializers.SerializerMethodField(
        help_text="Parameters to submit again with, by name; empty where no change of them helps."
    )

    @extend_schema_field(serializers.DictField())
    def get_changes(self, explanation: Explanation) -> dict[str, Any]:
        return dict(explanation.changes)


class FailureExplainedOut(serializers.Serializer[Any]):
    failure = ExplanationOut(allow_null=True, help_text="Null if the job has not failed or never ran.")


class QuestionQuery(StrictSerializer):
    q = SearchText(max_length=LONGEST_QUESTION, help_text="E.g. Is the loss falling?")


class AnswerOut(serializers.Serializer[Any]):
    topic = Word(TOPICS, allow_blank=True, help_text="Empty if the question was not understood.")
    text = serializers.CharField()
    lines = LogLineOut(many=True, help_text="The lines that the answer comes from.")


class FailureApi(StrictView):
    @extend_schema(operation_id="jobs_failure", responses=FailureExplainedOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Why the job failed, as its log tells it, and what helps."""
        found = explained(get_job(request.user, job_id))
        return Response({"failure": ExplanationOut(found).data if found else None})


class QuestionsApi(StrictView):
    query = {"get": QuestionQuery}

    @extend_schema(operation_id="jobs_questions", responses=AnswerOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Answer a question about the job's log, by rules."""
        job = get_job(request.user, job_id)
        question = self.parameters["q"]
        answer = answered(job=job, asker=request.user, question=question, now=database_now())
        return Response(AnswerOut(answer).data)
