"""Fine-tuning jobs of the contract: made, listed, told, and the verbs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import QueryDict
from django.utils.functional import SimpleLazyObject
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import ChoiceField
from portal.api.jobs.files import FileOut
from portal.api.jobs.filters import metadata_of
from portal.api.jobs.jobs import token_name
from portal.api.jobs.resources import JobOut
from portal.clock import database_now
from portal.openai import history
from portal.openai.job_object import base_rate, hyperparameters, job_object, job_objects
from portal.openai.job_request import in_words_of_the_contract, job_terms
from portal.openai.pages import ListQuery, Source, listed
from portal.openai.repeats import create
from portal.openai.views import OpenAIView
from scheduler.models import Job
from scheduler.models.ids import is_id_like, new_job_id
from scheduler.selectors.jobs import for_lists, get_job, visible_jobs
from scheduler.selectors.metadata import with_metadata, without_metadata
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job, submit_job

WIDE = ("options", "evidence", "notes", "binding", "fixed", "chosen")  # columns that no list tells


def job_key(public_id: str) -> str | None:
    return public_id if is_id_like(public_id, new_job_id()) else None


class JobsQuery(ListQuery):
    metadata = ChoiceField(choices=["null"], required=False)  # jobs without any


class JobsView(OpenAIView):
    query = {"get": JobsQuery}

    def take_parameters(self, params: QueryDict) -> dict[str, Any]:
        """`metadata[key]=value`, as clients write them."""
        pairs = metadata_of(params)
        names = {key: f"metadata[{key}]" for key in pairs}
        if twice := [names[key] for key, texts in pairs.items() if len(texts) > 1]:
            raise ValidationError({name: ["is given twice"] for name in twice})
        return {"pairs": {key: params.pop(name)[-1] for key, name in names.items()}}

    def post(self, request: ApiRequest) -> Response:
        """Submit a job; what is left out, or `auto`, is recommended."""
        now = database_now()
        terms = job_terms(user=request.user, body=request.data, team=self.team)
        submit = partial(submit_job, owner=request.user, now=now, token=token_name(request), **terms)
        with in_words_of_the_contract():
            made = create(
                request, now=now, make=lambda creation: submit(creation=creation),
                load=partial(get_job, request.user),
            )  # fmt: skip
        return Response(job_object(get_job(request.user, made.pk), now=database_now()))

    def get(self, request: ApiRequest) -> Response:
        """Jobs that one sees, newest first."""
        asked = self.parameters
        jobs = for_lists(visible_jobs(request.user)).defer(None).defer(*WIDE).select_related("training_file")
        jobs = with_metadata(without_metadata(jobs) if "metadata" in asked else jobs, asked["pairs"])
        now: Any = SimpleLazyObject(database_now)
        page = listed(
            Source(jobs, order="pk", key=job_key, show=lambda job: {"id": job.pk, "job": job}),
            after=asked.get("after"),
            limit=asked["limit"],
        )
        page["data"] = job_objects([row["job"] for row in page["data"]], now=now)
        return Response(page)


class JobView(OpenAIView):
    def get(self, request: ApiRequest, job_id: str) -> Response:
        return Response(job_object(get_job(request.user, job_id), now=database_now()))


def _verb(act: Callable[..., Job]) -> type[OpenAIView]:
    """The view of one verb; its body is empty."""

    class VerbView(OpenAIView):
        def post(self, request: ApiRequest, job_id: str) -> Response:
            now = database_now()
            act(job=get_job(request.user, job_id), actor=request.user, now=now)
            return Response(job_object(get_job(request.user, job_id), now=now))

    return VerbView


CancelView, PauseView, ResumeView = _verb(cancel_job), _verb(pause_job), _verb(resume_job)


class EventsView(OpenAIView):
    query = {"get": ListQuery}

    def get(self, request: ApiRequest, job_id: str) -> Response:
        """What happened to the job, and the figures of its steps, newest first."""
        asked, job = self.parameters, get_job(request.user, job_id)
        return Response(listed(*history.event_sources(job), after=asked.get("after"), limit=asked["limit"]))


class CheckpointQuery(ListQuery):
    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["limit"].default = 10
        return fields


class CheckpointsView(OpenAIView):
    query = {"get": CheckpointQuery}

    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Checkpoints that are kept, and the model itself, the newest step first."""
        asked, job = self.parameters, get_job(request.user, job_id)
        return Response(history.checkpoint_page(job, after=asked.get("after"), limit=asked["limit"]))


class ExplanationView(OpenAIView):
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Who chose each value and why, evidence, promise and what became of it."""
        job = get_job(request.user, job_id)
        told = JobOut(job, context={"now": database_now(), "user": request.user}).data
        return Response(
            {
                "object": "fine_tuning.job.explanation",
                "id": job.pk,
                "hyperparameters": hyperparameters(job.model, job.params, job.training_file.rows),
                "base_learning_rate": base_rate(job.model, job.params),
                "training_file": FileOut(job.training_file).data,
                "portal": told,
            }
        )
