"""Jobs: submit, list, detail, change, verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.permissions import AdminOnly
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import ChoiceField, StrictSerializer, Word
from portal.api.common.idempotent import create, created
from portal.api.common.narrow import FIELDS, IncludeField, named
from portal.api.common.tags import NONE_MATCH, is_known
from portal.api.common.viewsets import Resource
from portal.api.common.waiting import News, WaitQuery
from portal.api.jobs.filters import METADATA_PARAMETER, JobFilter, metadata_of, selected
from portal.api.jobs.requests import (
    CancelJobsIn,
    ChangeIn,
    JobIn,
    JobRequestOut,
    NoteIn,
    PlanIn,
    ReasonIn,
    ResolvedQuery,
    with_objects,
)
from portal.api.jobs.resources import JobBrief, JobOut
from portal.api.jobs.tags import seen_version, tag_of
from portal.clock import database_now
from scheduler.errors import Conflict
from scheduler.models import Job
from scheduler.selectors.job_requests import request_of
from scheduler.selectors.jobs import for_lists, get_job, glance_at, no_jobs, visible_jobs
from scheduler.selectors.public_states import PUBLIC_STATES, shown_state
from scheduler.selectors.signs import Aspect
from scheduler.services.jobs.cancellations import cancel_jobs
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.plans import submit_plan
from scheduler.services.jobs.priorities import hold_job, move_back, move_to_front, release_job
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job, return_to_queue, submit_job
from scheduler.states import TERMINAL

CANCEL_OUTCOMES = ("cancelled", "stopping", "ended", "not_found")
MOST_BY_FILTER = 1000  # jobs that one request cancels


class JobQuery(WaitQuery):
    include = IncludeField(JobOut.on_request)
    until = ChoiceField(
        choices=["started", "ended", "change"],
        required=False,
        help_text="With `wait_s`: until it has started, or ended, or changes; `change`, which is usual, is"
        " any event or progress since this request, or since the answer that `If-None-Match` names.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "until" in attrs and "wait_s" not in attrs:
            raise ValidationError({"until": ["goes with wait_s, which says how long to wait"]})
        return attrs


class CancelledJobOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    outcome = Word(
        CANCEL_OUTCOMES,
        help_text="cancelled: it has ended; stopping: it ends once its nodes have stopped it; ended: it had"
        " ended before, as `state` tells; not_found: there is none of this id, or it is not yours",
    )
    state = Word(PUBLIC_STATES, allow_null=True)


class CancelledJobsOut(serializers.Serializer[Any]):
    data = CancelledJobOut(many=True)  # type: ignore[assignment]  # DRF's own property of that name
    cancelled = serializers.IntegerField(help_text="Jobs that this request ended.")
    stopping = serializers.IntegerField(help_text="Jobs that this request will have ended.")


class Jobs(ListModelMixin, Resource):
    """Trainings: yours and those of your teams."""

    noun, is_named = "job", False
    serializer_class = JobOut
    queryset = no_jobs()
    lookup_url_kwarg = "job_id"
    filterset_class = JobFilter
    orders = {"submitted_at": "submitted_at", "ended_at": "ended_at", "state_since": "shown_since"}
    query = {"retrieve": JobQuery, "submission": ResolvedQuery}
    takes = {
        "create": JobIn,
        "partial_update": ChangeIn,
        "cancel": ReasonIn,
        "cancel_many": CancelJobsIn,
        "hold": NoteIn,
        "preempt": NoteIn,
        "front": NoteIn,
    }
    tells = {"list": JobBrief, "submission": JobRequestOut, "cancel_many": CancelledJobsOut}

    def get_queryset(self) -> QuerySet[Job]:
        return visible_jobs(self.request.user)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return for_lists(super().filter_queryset(queryset))

    def filter_names(self, request: Request) -> dict[str, Any]:
        """Those of metadata are their owner's."""
        pairs = [f"metadata[{key}]" for key in metadata_of(request.query_params)]
        return {**super().filter_names(request), **dict.fromkeys(pairs)} if self.action == "list" else {}

    def get_serializer_context(self) -> dict[str, Any]:
        now = SimpleLazyObject(database_now)  # a list asks for it only if one of its jobs runs
        return {**super().get_serializer_context(), "now": now, "user": self.request.user}

    def begin_from_match(self, request: Request) -> None:
        """Changes compare versions themselves.

        They hold no lock while options are looked for.
        """

    @extend_schema(
        request=PolymorphicProxySerializer(
            component_name="NewJob", serializers=[JobIn, PlanIn], resource_type_field_name=None
        )
    )
    def create(self, request: ApiRequest) -> Response:
        """Submit a job, or a plan.

        Only `model` and `training_file` are required; the rest is recommended. A `plan` comes alone.
        """
        by: dict[str, Any] = {"owner": request.user, "now": self.now, "token": token_name(request)}
        submit: Callable[..., Job]
        if isinstance(request.data, Mapping) and "plan" in request.data:
            submit = partial(submit_plan, **by, **checked(PlanIn, request))
        else:
            submit = partial(submit_job, **by, **with_objects(user=request.user, values=self.body()))
        job, made = create(
            request, make=lambda creation: submit(creation=creation), load=partial(get_job, request.user)
        )
        return created(self._whole(job.pk).data, path=f"{request.path}{job.pk}/", made=made)

    @extend_schema(parameters=[METADATA_PARAMETER])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Your jobs and your teams' jobs, newest first."""
        return super().list(request, *args, **kwargs)

    def retrieve(self, request: ApiRequest, job_id: str) -> Response:
        """One job: parameters and who chose them, promise, progress, figures.

        Its `attempts`, and the runs on whose `evidence` it was promised, come with `include`. Its `ETag`
        changes with its state, terms and progress. With `wait_s` the answer waits for that.
        """
        knows_one, wait_s = NONE_MATCH in request.headers, self.parameters.get("wait_s")
        until = self.parameters.get("until", "change")
        if knows_one or wait_s:
            aspect = Aspect.PROGRESS if until == "change" else Aspect.STATE
            news = News(request, job_id, aspect, wait_s)
            seen = glance_at(request.user, job_id)
            tag = tag_of(seen)
            is_same = is_known(request, tag)
            changed = news.arrived or (knows_one and not is_same)
            if not _is_due(seen, until, changed=changed) and (later := news.await_more()):
                return later
            if is_same:
                return Response(status=304, headers={"ETag": tag})
        return self._whole(job_id)

    @action(detail=True, url_path="request")
    def submission(self, request: ApiRequest, job_id: str) -> Response:
        """The job as it was asked for: a body for `jobs/` that submits it once more.

        What has passed meanwhile, such as a deadline, stays out.
        """
        return Response(request_of(get_job(request.user, job_id), self.now, **self.parameters))

    def partial_update(self, request: ApiRequest, job_id: str) -> Response:
        """Change a job in place: what is left out stays as it is.

        Goal, limits and fixed values only while it waits. For its owner, leads of its team and
        administrators.
        """
        values, job = self.body(), get_job(request.user, job_id)
        seen = seen_version(request, job)
        if seen is not None:
            values.setdefault("version", seen)
        change_job(job=job, **values, **self.by)
        return self._whole(job_id)

    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, job_id: str) -> Response:
        """Cancel a job that has not ended."""
        return self._done(cancel_job, job_id, **self.body())

    @action(detail=True, methods=["post"])
    def pause(self, request: ApiRequest, job_id: str) -> Response:
        """Pause a job; a running one leaves a checkpoint."""
        return self._done(pause_job, job_id)

    @action(detail=True, methods=["post"])
    def resume(self, request: ApiRequest, job_id: str) -> Response:
        """Queue a paused job again."""
        return self._done(resume_job, job_id)

    @action(detail=True, methods=["post"], permission_classes=[AdminOnly])
    def hold(self, request: ApiRequest, job_id: str) -> Response:
        """Keep a job from starting until it is released (administrators)."""
        return self._done(hold_job, job_id, **self.body())

    @action(detail=True, methods=["post"], permission_classes=[AdminOnly])
    def release(self, request: ApiRequest, job_id: str) -> Response:
        """Let a job start that was held (administrators)."""
        return self._done(release_job, job_id)

    @action(detail=True, methods=["post"], permission_classes=[AdminOnly])
    def preempt(self, request: ApiRequest, job_id: str) -> Response:
        """Take a job's GPUs back (administrators).

        It leaves a checkpoint and waits again.
        """
        return self._done(return_to_queue, job_id, **self.body())

    @action(detail=True, methods=["post"], permission_classes=[AdminOnly])
    def front(self, request: ApiRequest, job_id: str) -> Response:
        """Let a job that waits go before all others of its class (administrators)."""
        return self._done(move_to_front, job_id, **self.body())

    @extend_schema(responses={200: JobOut})
    @front.mapping.delete
    def front_end(self, request: ApiRequest, job_id: str) -> Response:
        """Give a job that was moved to the front its own place again (administrators)."""
        return self._done(move_back, job_id)

    @action(detail=False, methods=["post"], url_path="cancel")
    def cancel_many(self, request: ApiRequest) -> Response:
        """Cancel several jobs, by their ids or by a filter.

        The answer tells what became of each.
        """
        values = self.body()
        jobs = self.get_queryset()
        if "filter" in values:
            jobs = selected(jobs, values["filter"], request).exclude(state__in=TERMINAL)
            ids = self._as_confirmed(jobs, values["confirm_count"])
        else:
            ids = list(dict.fromkeys(values["ids"]))
        jobs = self.get_queryset().filter(pk__in=ids)
        done = cancel_jobs(jobs=jobs, reason=values["reason"], **self.by)
        found = jobs.in_bulk(ids)
        data = [{"id": one, **_end(found.get(one))} for one in ids]
        return Response({"data": data, "cancelled": done.waiting, "stopping": done.stopping})

    def _as_confirmed(self, jobs: QuerySet[Job], count: int) -> Any:
        """The ids of the jobs, oldest first.

        Raises Conflict unless they are as many as was said.
        """
        ids = [*jobs.order_by("pk").values_list("pk", flat=True)[: MOST_BY_FILTER + 1]]
        if len(ids) != count:
            many = f"more than {MOST_BY_FILTER:,}" if len(ids) > MOST_BY_FILTER else f"{len(ids):,}"
            raise Conflict(f"The filter selects {many} jobs that have not ended, not {count:,}; look again.")
        return ids

    def _whole(self, job_id: str) -> Response:
        """The job as it is now."""
        job = get_job(self.request.user, job_id)
        asked = self.parameters.get("include", frozenset()) | {*named(self.request.GET.get(FIELDS, ""))}
        context = {**self.get_serializer_context(), "now": database_now(), "include": asked}
        shown = JobOut(job, context=context).data
        return Response(shown, headers={"ETag": tag_of(job)})

    def _done(self, act: Callable[..., Job], job_id: str, **values: Any) -> Response:
        """Do something to a job, unless it is not as `If-Match` says.

        The answer is the job.
        """
        job = get_job(self.request.user, job_id)
        seen_version(self.request, job)
        act(job=job, **values, **self.by)
        return self._whole(job_id)


def _is_due(job: Job, until: str, *, changed: bool) -> bool:
    """Is there nothing to wait for any more?"""
    ended = job.state in TERMINAL
    return ended or {"started": job.first_started_at is not None, "ended": False, "change": changed}[until]


def _end(job: Job | None) -> dict[str, str | None]:
    """What became of a job that was to be cancelled."""
    if job is None:
        return {"outcome": "not_found", "state": None}
    state = shown_state(job)
    if state == "cancelled":
        return {"outcome": "cancelled" if job.state in TERMINAL else "stopping", "state": state}
    return {"outcome": "ended", "state": state}


def checked(serializer: type[StrictSerializer], request: ApiRequest) -> dict[str, Any]:
    """The values of a body. Raises ValidationError."""
    data = serializer(data=request.data)
    data.is_valid(raise_exception=True)
    return dict(data.validated_data)


def token_name(request: ApiRequest) -> str:
    """The name of the API token that the request came with; empty for a session."""
    return str(getattr(request.auth, "name", ""))
