"""Changes that would let a waiting job start sooner."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Word
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.core.changes.possible import ChangeKind
from scheduler.selectors.cluster.job_changes import OfferedChange, changes_of
from scheduler.selectors.jobs import get_job
from scheduler.services.forecasts.changes import ask_changes


class OfferedChangeOut(serializers.Serializer[OfferedChange]):
    kind = Word(ChangeKind)
    text = serializers.CharField(help_text="The change in words.")
    change = serializers.JSONField(help_text="A body for `PATCH`; empty if it is no change of the job.")
    may = serializers.BooleanField(help_text="May you do it? Of another job: may you pause it?")
    job = serializers.SerializerMethodField(help_text="The job that would have to end, if you see it.")
    start_at = serializers.DateTimeField()
    start_low = serializers.DateTimeField()
    start_high = serializers.DateTimeField(allow_null=True)
    end_at = serializers.DateTimeField(allow_null=True)
    sooner_s = serializers.FloatField(allow_null=True, help_text="Null: without it there is no forecast.")
    duration_s = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(allow_null=True)
    delayed = serializers.FloatField(help_text="Jobs that wait now and would start later, on average.")
    delay_s = serializers.FloatField(help_text="By how long they would, all together.")
    unfinished = serializers.FloatField(help_text="Chance that its time limit ends it before it is done.")

    def get_job(self, one: OfferedChange) -> str | None:
        return one.about.pk if one.about else None


class ChangesOut(serializers.Serializer[Any]):
    computing = serializers.BooleanField(help_text="An answer is being computed; ask again in a moment.")
    made_at = serializers.DateTimeField(allow_null=True)
    version = serializers.IntegerField(help_text="The job's, to be sent with the change.")
    offers = OfferedChangeOut(many=True)
    trouble = serializers.CharField(help_text="Why none could be looked for; empty: they were.")


class ChangesApi(StrictView):
    @extend_schema(operation_id="jobs_changes", responses=ChangesOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """The changes that would let a waiting job start sooner, best first.

        Each was tried by playing the queue ahead with it. They are kept until the next plan.
        """
        job, now = get_job(request.user, job_id), database_now()
        ask_changes(job=job, now=now)
        found = changes_of(job, request.user, now)
        return Response(ChangesOut({**found._asdict(), "version": job.version}).data)
