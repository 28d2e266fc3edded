"""Why attempts failed in a period."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Word
from portal.api.common.period import PeriodQuery, read_period
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.selectors.analysis.analytics import FailedAttempts, ended, failed_attempts
from scheduler.states import FAILURE_CLASSES, Outcome

USUAL = timedelta(days=30)


class FailedAttemptsOut(serializers.Serializer[FailedAttempts]):
    cause = serializers.CharField(
        help_text="As its log tells it, such as gpu-memory; empty until the log was read."
    )
    failure_class = Word(FAILURE_CLASSES, allow_blank=True, help_text="Empty where unknown.")
    outcome = Word(Outcome, help_text="As the node reported it.")
    attempts = serializers.IntegerField()


class FailuresOut(serializers.Serializer[dict[str, Any]]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    causes = FailedAttemptsOut(many=True, help_text="Most frequent first.")
    failed_jobs = serializers.DictField(
        child=serializers.IntegerField(), help_text="Jobs that failed for good, by class of failure."
    )


class FailuresApi(StrictView):
    query = {"get": PeriodQuery}

    @extend_schema(operation_id="failures_retrieve", responses=FailuresOut)
    def get(self, request: ApiRequest) -> Response:
        """Attempts that ended badly, by cause, of the jobs that you may see.

        A job that was tried again counts with each attempt.
        """
        query = self.parameters
        period = read_period(query, usual=USUAL, now=database_now())
        content = {"since": period.start, "until": period.end}
        failed_jobs = ended(request.user, period).failures
        causes = failed_attempts(request.user, period)
        return Response(FailuresOut({**content, "causes": causes, "failed_jobs": failed_jobs}).data)
