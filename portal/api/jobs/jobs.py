"""Jobs: submit, list, detail, change, verbs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer
from portal.api.common.idempotent import KEY, create, created
from portal.api.common.pages import page, page_of
from portal.api.common.views import AdminApi, StrictView
from portal.api.common.waiting import News
from portal.api.jobs.requests import (
    CancelJobsIn,
    ChangeIn,
    JobIn,
    JobQuery,
    JobWaitQuery,
    NoteIn,
    ReasonIn,
    with_objects,
)
from portal.api.jobs.resources import JobBrief, JobOut
from portal.api.jobs.tags import names, seen_version, tag_of
from portal.clock import database_now
from scheduler.models import Job
from scheduler.selectors.jobs import for_lists, get_job, glance_at, visible_jobs
from scheduler.selectors.public_states import STATE_CHOICES, in_public_state, shown_state
from scheduler.selectors.signs import Aspect
from scheduler.services.jobs.cancellations import cancel_jobs
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.priorities import hold_job, move_back, move_to_front, release_job
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job, return_to_queue, submit_job
from scheduler.states import TERMINAL

JobPage = page_of(JobBrief)


class JobsApi(StrictView):
    query = {"get": JobQuery}

    @extend_schema(operation_id="jobs_create", parameters=[KEY], request=JobIn, responses={201: JobOut})
    def post(self, request: ApiRequest) -> Response:
        """Submit a job.

        Only `model` and `training_file` are required; the rest is recommended.
        """
        values = with_objects(user=request.user, values=checked(JobIn, request))
        submit = partial(
            submit_job, owner=request.user, now=database_now(), token=token_name(request), **values
        )
        job, made = create(
            request, make=lambda creation: submit(creation=creation), load=partial(get_job, request.user)
        )
        return created(_whole(request, job.pk).data, path=f"{request.path}{job.pk}/", made=made)

    @extend_schema(operation_id="jobs_list", responses=JobPage)
    def get(self, request: ApiRequest) -> Response:
        """Your jobs and your teams' jobs, newest first."""
        query = self.parameters
        rows = for_lists(visible_jobs(request.user))
        if state := query.pop("state", None):
            rows = in_public_state(rows, state)
        if model := query.pop("model", None):
            rows = rows.filter(model=model)
        context = {"now": SimpleLazyObject(database_now)}  # asked for only if one of the jobs runs
        return Response(page(rows, JobBrief(context=context).to_representation, **query))


class JobApi(StrictView):
    query = {"get": JobWaitQuery}

    @extend_schema(operation_id="jobs_retrieve", responses=JobOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """One job: parameters and who chose them, promise, progress, attempts.

        Its `ETag` changes with its state, terms and progress. With `wait_s` the answer waits for that.
        """
        query = self.parameters
        known, wait_s = request.headers.get("If-None-Match"), query.get("wait_s")
        until = query.get("until", "change")
        if known or wait_s:
            aspect = Aspect.PROGRESS if until == "change" else Aspect.STATE
            news = News(request, job_id, aspect, wait_s)
            seen = glance_at(request.user, job_id)
            tag = tag_of(seen)
            is_known = bool(known and names(known, tag))
            changed = news.arrived or bool(known and not is_known)
            if not _is_due(seen, until, changed=changed) and (later := news.await_more()):
                return later
            if is_known:
                return Response(status=304, headers={"ETag": tag})
        return _whole(request, job_id)

    @extend_schema(operation_id="jobs_partial_update", request=ChangeIn, responses=JobOut)
    def patch(self, request: ApiRequest, job_id: str) -> Response:
        """Change a job in place: what is left out stays as it is.

        Goal, limits and fixed values only while it waits. For its owner, leads of its team and
        administrators.
        """
        values = checked(ChangeIn, request)
        job = get_job(request.user, job_id)
        seen = seen_version(request, job)
        values = values if seen is None else {"version": seen, **values}
        change_job(job=job, actor=request.user, now=database_now(), **values)
        return _whole(request, job_id)


def _is_due(job: Job, until: str, *, changed: bool) -> bool:
    """Is there nothing to wait for any more?"""
    ended = job.state in TERMINAL
    return ended or {"started": job.first_started_at is not None, "ended": False, "change": changed}[until]


def checked(serializer: type[StrictSerializer], request: ApiRequest) -> dict[str, Any]:
    """The values of a body. Raises ValidationError."""
    data = serializer(data=request.data)
    data.is_valid(raise_exception=True)
    return dict(data.validated_data)


def token_name(request: ApiRequest) -> str:
    """The name of the API token that the request came with; empty for a session."""
    return str(getattr(request.auth, "name", ""))


def _whole(request: ApiRequest, job_id: str) -> Response:
    """The job as it is now."""
    job = get_job(request.user, job_id)
    shown = JobOut(job, context={"now": database_now(), "user": request.user}).data
    return Response(shown, headers={"ETag": tag_of(job)})


def _verb(name: str, text: str, act: Callable[..., Job]) -> type[APIView]:
    """The view of one verb; `act` is the service that does it."""

    class VerbApi(StrictView):
        @extend_schema(operation_id=f"jobs_{name}", description=text, request=None, responses=JobOut)
        def post(self, request: ApiRequest, job_id: str) -> Response:
            return _done(act, request, job_id)

    return VerbApi


def _with_words(
    words: type[StrictSerializer], act: Callable[..., Job], request: ApiRequest, job_id: str
) -> Response:
    """The answer of a verb with a note or a reason; `act` does it."""
    return _done(act, request, job_id, **checked(words, request))


def _done(act: Callable[..., Job], request: ApiRequest, job_id: str, **values: Any) -> Response:
    """Do something to a job, unless it is not as `If-Match` says; the answer is the job."""
    job = get_job(request.user, job_id)
    seen_version(request, job)
    act(job=job, actor=request.user, now=database_now(), **values)
    return _whole(request, job_id)


class CancelApi(StrictView):
    @extend_schema(operation_id="jobs_cancel", request=ReasonIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Cancel a job that has not ended."""
        return _with_words(ReasonIn, cancel_job, request, job_id)


class CancelledJobOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    outcome = serializers.ChoiceField(
        choices=["cancelled", "stopping", "ended", "not_found"],
        help_text="cancelled: it has ended; stopping: it ends once its nodes have stopped it; ended: it had"
        " ended before, as `state` tells; not_found: there is none of this id, or it is not yours",
    )
    state = serializers.ChoiceField(choices=STATE_CHOICES, allow_null=True)


class CancelledJobsOut(serializers.Serializer[Any]):
    data = CancelledJobOut(many=True)  # type: ignore[assignment]  # DRF's own property of that name
    cancelled = serializers.IntegerField(help_text="Jobs that this request ended.")
    stopping = serializers.IntegerField(help_text="Jobs that this request will have ended.")


class CancelJobsApi(StrictView):
    @extend_schema(operation_id="jobs_cancel_many", request=CancelJobsIn, responses=CancelledJobsOut)
    def post(self, request: ApiRequest) -> Response:
        """Cancel several jobs; the answer tells what became of each, in the order of the request."""
        values = checked(CancelJobsIn, request)
        ids = list(dict.fromkeys(values["ids"]))
        jobs = visible_jobs(request.user).filter(pk__in=ids)
        done = cancel_jobs(jobs=jobs, actor=request.user, now=database_now(), reason=values["reason"])
        found = jobs.in_bulk(ids)
        data = [{"id": one, **_end(found.get(one))} for one in ids]
        return Response({"data": data, "cancelled": done.waiting, "stopping": done.stopping})


def _end(job: Job | None) -> dict[str, str | None]:
    """What became of a job that was to be cancelled."""
    if job is None:
        return {"outcome": "not_found", "state": None}
    state = shown_state(job)
    if state == "cancelled":
        return {"outcome": "cancelled" if job.state in TERMINAL else "stopping", "state": state}
    return {"outcome": "ended", "state": state}


class HoldApi(AdminApi):
    @extend_schema(operation_id="jobs_hold", request=NoteIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Keep a job from starting until it is released (administrators)."""
        return _with_words(NoteIn, hold_job, request, job_id)


class ReleaseApi(AdminApi):
    @extend_schema(operation_id="jobs_release", request=None, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Let a job start that was held (administrators)."""
        return _done(release_job, request, job_id)


class PreemptApi(AdminApi):
    @extend_schema(operation_id="jobs_preempt", request=NoteIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Take a job's GPUs back (administrators).

        It leaves a checkpoint and waits again.
        """
        return _with_words(NoteIn, return_to_queue, request, job_id)


class FrontApi(AdminApi):
    @extend_schema(operation_id="jobs_front", request=NoteIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Let a job that waits go before all others of its class (administrators)."""
        return _with_words(NoteIn, move_to_front, request, job_id)

    @extend_schema(operation_id="jobs_front_end", request=None, responses={200: JobOut})
    def delete(self, request: ApiRequest, job_id: str) -> Response:
        """Give a job that was moved to the front its own place again (administrators)."""
        return _done(move_back, request, job_id)


PauseApi = _verb("pause", "Pause a job; a running one leaves a checkpoint.", pause_job)
ResumeApi = _verb("resume", "Queue a paused job again.", resume_job)
