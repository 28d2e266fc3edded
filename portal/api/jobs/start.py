"""When a waiting job starts, with an 80 % interval."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Word
from portal.api.common.views import StrictView
from portal.api.jobs.requests import JobIn, job_body
from portal.clock import database_now
from scheduler.selectors.figures.start_forecasts import newest_forecast, start_promise
from scheduler.selectors.figures.start_questions import Stage, StartAnswer, as_answer, start_answer
from scheduler.selectors.jobs import get_job
from scheduler.services.forecasts.questions import ask_start


class ExpectedOut(serializers.Serializer[Any]):
    """Moments; null is later than was played ahead."""

    start_at = serializers.DateTimeField()
    start_low = serializers.DateTimeField()
    start_high = serializers.DateTimeField(allow_null=True)
    end_at = serializers.DateTimeField(allow_null=True)
    end_low = serializers.DateTimeField(allow_null=True)
    end_high = serializers.DateTimeField(allow_null=True)
    made_at = serializers.DateTimeField()
    stale = serializers.BooleanField(help_text="It is older than it should be.")


class StartPromiseOut(serializers.Serializer[Any]):
    """The first forecast after the job was queued; it never changes."""

    made_at = serializers.DateTimeField()
    start_at = serializers.DateTimeField()
    start_low = serializers.DateTimeField()
    start_high = serializers.DateTimeField(allow_null=True)
    actual = serializers.DateTimeField(allow_null=True, help_text="When it first started.")
    inside = serializers.BooleanField(
        allow_null=True, help_text="Was it kept? Null until the start, and where a person had a hand in it."
    )


class StartOut(serializers.Serializer[Any]):
    expected = ExpectedOut(allow_null=True, help_text="Null unless the job waits and has a forecast.")
    promised = StartPromiseOut(allow_null=True, help_text="Null if it started before its first forecast.")


class StartQuestionOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    address = serializers.SerializerMethodField(help_text="Where the answer is asked for.")
    stage = Word(Stage, help_text="`unavailable`: no worker answers.")
    expected = ExpectedOut(allow_null=True)
    trouble = serializers.CharField(help_text="Why there is no forecast; else empty.")

    def get_address(self, answer: StartAnswer) -> str:
        return reverse("start-question", args=[answer.id])


class StartQuestionsApi(StrictView):
    @extend_schema(operation_id="recommendations_start", request=JobIn, responses={202: StartQuestionOut})
    def post(self, request: ApiRequest) -> Response:
        """Ask when a job would start and end if it were submitted now.

        A worker computes it within seconds; the answer waits at `address`, for you alone, for 15 minutes.
        You may have three questions open: another one takes the place of the oldest.
        """
        values, now = job_body(request), database_now()
        values.pop("read", None)  # nothing is kept of a job that is only asked about
        question = ask_start(owner=request.user, now=now, **values)
        shown = StartQuestionOut(as_answer(question, now)).data
        return Response(shown, status=202, headers={"Location": shown["address"]})


class StartQuestionApi(StrictView):
    @extend_schema(operation_id="recommendations_start_retrieve", responses=StartQuestionOut)
    def get(self, request: ApiRequest, question_id: str) -> Response:
        """The answer to a question of yours, once a worker has computed it."""
        return Response(StartQuestionOut(start_answer(request.user, question_id, database_now())).data)


class StartApi(StrictView):
    @extend_schema(operation_id="jobs_start", responses=StartOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """When the job is expected to start and end, and what was promised first."""
        job = get_job(request.user, job_id)
        shown = StartOut({"expected": newest_forecast(job, database_now()), "promised": start_promise(job)})
        return Response(shown.data)
