"""Jobs: submit, list, detail, verbs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.requests import ApiRequest
from portal.api.common.idempotent import KEY, create
from portal.api.common.pages import page, page_of, read_query
from portal.api.common.views import AdminApi
from portal.api.jobs.requests import ChangeIn, JobIn, JobQuery, NoteIn, with_objects
from portal.api.jobs.resources import JobBrief, JobOut
from portal.clock import database_now
from scheduler.models import Job
from scheduler.selectors.jobs import for_lists, get_job, visible_jobs
from scheduler.selectors.public_states import in_public_state
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.priorities import hold_job, move_back, move_to_front, release_job
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job, return_to_queue, submit_job

JobPage = page_of(JobBrief)


class JobsApi(APIView):
    @extend_schema(operation_id="jobs_create", parameters=[KEY], request=JobIn, responses={201: JobOut})
    def post(self, request: ApiRequest) -> Response:
        """Submit a job.

        Only `model` and `training_file` are required; the rest is recommended.
        """
        data = JobIn(data=request.data)
        data.is_valid(raise_exception=True)
        values = with_objects(user=request.user, values=data.validated_data)
        submit = partial(submit_job, owner=request.user, now=database_now(), **values)
        job, _ = create(
            request, make=lambda creation: submit(creation=creation), load=partial(get_job, request.user)
        )
        return _whole(request, job.pk, status=201)

    @extend_schema(operation_id="jobs_list", parameters=[JobQuery], responses=JobPage)
    def get(self, request: ApiRequest) -> Response:
        """Your jobs and your teams' jobs, newest first."""
        query = read_query(JobQuery, request.query_params)
        rows = for_lists(visible_jobs(request.user))
        if state := query.pop("state", None):
            rows = in_public_state(rows, state)
        if model := query.pop("model", None):
            rows = rows.filter(model=model)
        context = {"now": SimpleLazyObject(database_now)}  # asked for only if one of the jobs runs
        return Response(page(rows, JobBrief(context=context).to_representation, **query))


class JobApi(APIView):
    @extend_schema(operation_id="jobs_retrieve", responses=JobOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """One job: parameters and who chose them, promise, progress, attempts."""
        return _whole(request, job_id)


def _whole(request: ApiRequest, job_id: str, *, status: int = 200) -> Response:
    """The job as it is now."""
    job = JobOut(get_job(request.user, job_id), context={"now": database_now(), "user": request.user})
    return Response(job.data, status=status)


def _verb(name: str, text: str, act: Callable[..., Job]) -> type[APIView]:
    """The view of one verb; `act` is the service that does it."""

    class VerbApi(APIView):
        @extend_schema(operation_id=f"jobs_{name}", description=text, request=None, responses=JobOut)
        def post(self, request: ApiRequest, job_id: str) -> Response:
            job = act(job=get_job(request.user, job_id), actor=request.user, now=database_now())
            return _whole(request, job.pk)

    return VerbApi


def _with_note(act: Callable[..., Job], request: ApiRequest, job_id: str) -> Response:
    """The answer of an administrators' verb with a note; `act` does it."""
    data = NoteIn(data=request.data)
    data.is_valid(raise_exception=True)
    act(job=get_job(request.user, job_id), actor=request.user, now=database_now(), **data.validated_data)
    return _whole(request, job_id)


class ChangeApi(APIView):
    @extend_schema(operation_id="jobs_change", request=ChangeIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Change a job in place: what is left out stays as it is.

        Goal, limits and fixed values only while it waits. For its owner, leads of its team and
        administrators.
        """
        data = ChangeIn(data=request.data)
        data.is_valid(raise_exception=True)
        job = get_job(request.user, job_id)
        change_job(job=job, actor=request.user, now=database_now(), **data.validated_data)
        return _whole(request, job_id)


class HoldApi(AdminApi):
    @extend_schema(operation_id="jobs_hold", request=NoteIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Keep a job from starting until it is released (administrators)."""
        return _with_note(hold_job, request, job_id)


class ReleaseApi(AdminApi):
    @extend_schema(operation_id="jobs_release", request=None, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Let a job start that was held (administrators)."""
        release_job(job=get_job(request.user, job_id), actor=request.user, now=database_now())
        return _whole(request, job_id)


class PreemptApi(AdminApi):
    @extend_schema(operation_id="jobs_preempt", request=NoteIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Take a job's GPUs back (administrators).

        It leaves a checkpoint and waits again.
        """
        return _with_note(return_to_queue, request, job_id)


class FrontApi(AdminApi):
    @extend_schema(operation_id="jobs_front", request=NoteIn, responses=JobOut)
    def post(self, request: ApiRequest, job_id: str) -> Response:
        """Let a job that waits go before all others of its class (administrators)."""
        return _with_note(move_to_front, request, job_id)

    @extend_schema(operation_id="jobs_front_end", request=None, responses={200: JobOut})
    def delete(self, request: ApiRequest, job_id: str) -> Response:
        """Give a job that was moved to the front its own place again (administrators)."""
        move_back(job=get_job(request.user, job_id), actor=request.user, now=database_now())
        return _whole(request, job_id)


CancelApi = _verb("cancel", "Cancel a job that has not ended.", cancel_job)
PauseApi = _verb("pause", "Pause a job; a running one leaves a checkpoint.", pause_job)
ResumeApi = _verb("resume", "Queue a paused job again.", resume_job)
