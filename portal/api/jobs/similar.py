"""Earlier jobs like a job, as far as the asker may see them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Word
from portal.api.common.pages import list_of
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.selectors.analysis.similar_jobs import SimilarJob, facts_of_job, similar_jobs
from scheduler.selectors.jobs import get_job
from scheduler.selectors.public_states import PUBLIC_STATES
from scheduler.states import JobState, public_state


class DifferenceOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    here = serializers.JSONField()
    there = serializers.JSONField(help_text="The earlier job's value.")


class SimilarJobOut(serializers.Serializer[Any]):
    id = serializers.CharField(source="job.pk")
    similarity = serializers.FloatField(help_text="0 to 1: cosine of TF-IDF over what they train.")
    differs = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField(help_text="How it ended.")
    duration_s = serializers.FloatField(allow_null=True)
    peak_memory_bytes = serializers.IntegerField(allow_null=True)

    @extend_schema_field(DifferenceOut(many=True))
    def get_differs(self, one: SimilarJob) -> list[dict[str, Any]]:
        return [{"name": name, "here": here, "there": there} for name, here, there in one.differs]

    @extend_schema_field(Word(PUBLIC_STATES))
    def get_state(self, one: SimilarJob) -> str:
        return public_state(JobState(one.job.state), one.job.stop_for)


class SimilarApi(StrictView):
    @extend_schema(operation_id="jobs_similar", responses=list_of(SimilarJobOut))
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Up to five earlier jobs of yours or your teams, most similar first."""
        job = get_job(request.user, job_id)
        found = similar_jobs(request.user, facts_of_job(job), database_now(), but=job.pk)
        return Response({"data": SimilarJobOut(found.jobs, many=True).data})
