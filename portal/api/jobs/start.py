"""When a waiting job starts, with an 80 % interval."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.requests import ApiRequest
from portal.clock import database_now
from scheduler.selectors.figures.start_forecasts import newest_forecast
from scheduler.selectors.jobs import get_job


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


class StartOut(serializers.Serializer[Any]):
    expected = ExpectedOut(allow_null=True, help_text="Null unless the job waits and something is foretold.")


class StartApi(APIView):
    @extend_schema(operation_id="jobs_start", responses=StartOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """When the job is expected to start and end, from playing the queue ahead."""
        expected = newest_forecast(get_job(request.user, job_id), database_now())
        return Response({"expected": ExpectedOut(expected).data if expected else None})
