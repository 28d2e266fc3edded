"""Parts of one job: events, metrics, logs, artifacts."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, QuerySet
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, WrittenNumber
from portal.api.common.pages import list_of, page_of
from portal.api.common.views import AnyAccept, StrictView
from portal.api.common.waiting import News, WaitQuery
from portal.api.jobs.curves import kept_rows
from portal.api.jobs.resources import EventOut, MetricOut
from portal.clock import database_now
from portal.http.archives import Member
from portal.http.downloads import OCTETS, download, download_archive
from scheduler.models import Artifact, Metric
from scheduler.selectors.jobs import (
    artifact_file,
    artifact_files,
    artifacts,
    events,
    get_job,
    log_text,
    metrics,
)
from scheduler.selectors.signs import Aspect
from scheduler.services.jobs.kept_checkpoints import delete_outputs
from scheduler.states import TERMINAL
from trainer.step_metrics import STEP_METRICS

USUAL_METRICS, MAX_METRICS = 1000, 5000
MAX_LOG_BYTES = 200_000


class EventsQuery(StrictSerializer):
    after = WrittenNumber(min_value=0, default=0, help_text="Number of the last event seen.")


class MetricsQuery(WaitQuery):
    after = WrittenNumber(
        min_value=0,
        max_value=BigIntegerField.MAX_BIGINT,
        default=0,
        help_text="Id of the last row already seen.",
    )
    limit = WrittenNumber(min_value=1, max_value=MAX_METRICS, required=False, help_text="1,000 if left out.")
    attempt = WrittenNumber(
        min_value=1, max_value=2**31 - 1, required=False, help_text="The number of one attempt; else of all."
    )
    points = WrittenNumber(
        min_value=2,
        max_value=MAX_METRICS,
        required=False,
        help_text="Thin all rows to so many. The first, the last and the extremes of each metric stay.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "points" in attrs and "limit" in attrs:
            raise ValidationError({"limit": ["says nothing beside points, which thin all rows"]})
        if "points" in attrs and "wait_s" in attrs:
            raise ValidationError({"wait_s": ["goes with after, for rows to come, not with points"]})
        return attrs


class LogQuery(WaitQuery):
    offset = WrittenNumber(min_value=0, default=0, max_value=2**53)
    limit = WrittenNumber(min_value=1, default=64_000, max_value=MAX_LOG_BYTES)


class LogOut(serializers.Serializer[Any]):
    text = serializers.CharField()
    next_offset = serializers.IntegerField()
    complete = serializers.BooleanField(help_text="The job has ended, and this was the rest of its log.")


class ArtifactOut(serializers.ModelSerializer[Artifact]):
    created_at = serializers.DateTimeField(source="at", read_only=True)

    class Meta:
        model = Artifact
        fields = ["path", "bytes", "sha256", "created_at"]


class EventsApi(StrictView):
    query = {"get": EventsQuery}

    @extend_schema(operation_id="jobs_events", responses=list_of(EventOut))
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Events of the job, in order."""
        job = get_job(request.user, job_id)
        after = self.parameters["after"]
        return Response({"data": EventOut(events(job).filter(number__gt=after), many=True).data})


class MetricsApi(StrictView):
    query = {"get": MetricsQuery}

    @extend_schema(operation_id="jobs_metrics", responses=page_of(MetricOut))
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Progress by step: all lines that the training reported, oldest first.

        Go on with `after=NEXT`, and follow a running job with the `id` of the last row. A later attempt may
        repeat steps. An evaluation is written into the row of its step. With `wait_s` the answer waits for a
        row, as long as the job has not ended.
        """
        query = self.parameters
        news = News(request, job_id, Aspect.PROGRESS, query.get("wait_s"))
        job = get_job(request.user, job_id)
        rows = metrics(job)
        if attempt := query.get("attempt"):
            rows = rows.filter(attempt__fence=attempt)
        total = rows.count()
        rows = rows.filter(pk__gt=query["after"])
        more = False
        if points := query.get("points"):
            found = list(_thinned(rows, points))
        else:
            limit = query.get("limit", USUAL_METRICS)
            found = list(rows[: limit + 1])
            more, found = len(found) > limit, found[:limit]
        if not found and job.state not in TERMINAL and (later := news.await_more()):
            return later
        following = str(found[-1].pk) if more else None
        shown = MetricOut(found, many=True).data
        return Response({"data": shown, "total": total, "has_more": more, "next": following})


def _thinned(rows: QuerySet[Metric], points: int) -> QuerySet[Metric]:
    """The rows that show what the curves of all of them show."""
    columns = [metric.column or f"others__{metric.name}" for metric in STEP_METRICS]
    values = ((key, found) for key, *found in rows.values_list("pk", *columns).iterator())
    kept = kept_rows(values, count=rows.count(), metrics=len(columns), points=points)
    return rows.filter(pk__in=kept)


class LogsApi(StrictView):
    query = {"get": LogQuery}

    @extend_schema(operation_id="jobs_logs", responses=LogOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """A piece of the log; ask again from `next_offset` for what came since.

        With `wait_s` the answer waits for more, as long as the job has not ended.
        """
        query = self.parameters
        news = News(request, job_id, Aspect.LOG, query.pop("wait_s", None))
        job = get_job(request.user, job_id)
        text, next_offset = log_text(job, **query)
        ended = job.state in TERMINAL
        if not text and not ended and (later := news.await_more()):
            return later
        complete = ended and len(text) < query["limit"]
        return Response({"text": text, "next_offset": next_offset, "complete": complete})


class ArtifactsApi(StrictView):
    @extend_schema(operation_id="jobs_artifacts", responses=list_of(ArtifactOut))
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """The files the job produced: adapter or model, model card, metrics."""
        job = get_job(request.user, job_id)
        return Response({"data": ArtifactOut(artifacts(job), many=True).data})

    @extend_schema(operation_id="jobs_artifacts_destroy", request=None, responses={204: None})
    def delete(self, request: ApiRequest, job_id: str) -> Response:
        """Delete all files that an ended job left; its history, figures and log stay.

        For its owner, leads of its team and administrators.
        """
        delete_outputs(job=get_job(request.user, job_id), actor=request.user, now=database_now())
        return Response(status=204)


class ArtifactsTarQuery(StrictSerializer):
    all = serializers.BooleanField(
        default=False,
        help_text="All artifacts, the log too; else the adapter or model, with its tokenizer and card.",
    )


class ArtifactsTarApi(StrictView):
    query = {"get": ArtifactsTarQuery}
    content_negotiation_class = AnyAccept

    @extend_schema(operation_id="jobs_artifacts_tar", responses={(200, OCTETS): OpenApiTypes.BINARY})
    def get(self, request: ApiRequest, job_id: str) -> HttpResponseBase:
        """Download the adapter or model of a job as one tar archive.

        With `all` it has all artifacts, the log too. Its `ETag` changes with names and contents.
        """
        files = artifact_files(get_job(request.user, job_id), outputs=not self.parameters["all"])
        members = [Member(one.path, file, one.bytes, one.sha256, one.at) for one, file in files]
        return download_archive(request, members, name=f"{job_id}.tar")


class ArtifactApi(StrictView):
    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="jobs_artifact_download",
        responses={(200, OCTETS): OpenApiTypes.BINARY, (206, OCTETS): OpenApiTypes.BINARY},
    )
    def get(self, request: ApiRequest, job_id: str, path: str) -> HttpResponseBase:
        """Download one artifact, or with `Range` a part of it.

        Its `ETag` is its SHA-256.
        """
        file, sha256 = artifact_file(get_job(request.user, job_id), path)
        # Always as an attachment: a report a job wrote must never run as a page of the portal.
        return download(request, file, sha256=sha256, attached_as=path.rsplit("/", 1)[-1])
