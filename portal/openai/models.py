"""Models: base models that one may train, and those that one's jobs made."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.catalogue import Model
from knowledge.core.recommend.submit_defaults import base_learning_rate
from portal.accounts.models import User
from portal.accounts.requests import ApiRequest
from portal.clock import database_now
from portal.openai.errors import NotHere, Refused
from portal.openai.names import model_name, named, owner_name, seconds
from portal.openai.views import OpenAIView
from scheduler.models import Artifact
from scheduler.selectors.results import visible_results
from scheduler.services.jobs.kept_checkpoints import delete_outputs

TUNINGS = ("lora", "qlora", "full")


def base_object(model: Model) -> dict[str, Any]:
    rates = {tuning: base_learning_rate(model.model_name, tuning) for tuning in TUNINGS}
    return {
        "object": "model",
        "id": model.model_name,
        "created": 0,  # the catalogue does not say since when there is one
        "owned_by": model.model_name.rpartition("/")[0] or "portal",
        "portal": {
            "parameters": model.parameters,
            "max_context": model.max_context,
            "base_learning_rates": rates,
        },
    }


def made_object(result: Artifact) -> dict[str, Any]:
    job = result.job
    return {
        "object": "model",
        "id": model_name(job),
        "created": seconds(job.ended_at) or 0,
        "owned_by": owner_name(job),
        "portal": {"base_model": job.model, "job": job.pk, "files": f"/api/jobs/{job.pk}/artifacts/"},
    }


def get_made(user: User, name: str) -> Artifact | None:
    """The result behind the name of a model that a job made.

    None where it is none that the user sees.
    """
    which = named(name)
    found = visible_results(user).filter(job=which.job_id).first() if which and which.step is None else None
    return found if found and model_name(found.job) == name else None


class ModelsView(OpenAIView):
    def get(self, request: ApiRequest) -> Response:
        """All of them at once, as the contract says."""
        made = [made_object(result) for result in visible_results(request.user).order_by("-job_id")]
        return Response(
            {"object": "list", "data": [*made, *map(base_object, portal_catalogue().every_model)]}
        )


class ModelView(OpenAIView):
    def get(self, request: ApiRequest, name: str) -> Response:
        if result := get_made(request.user, name):
            return Response(made_object(result))
        model = next((one for one in portal_catalogue().every_model if one.model_name == name), None)
        if model is None:
            raise _unknown(name)
        return Response(base_object(model))

    def delete(self, request: ApiRequest, name: str) -> Response:
        """Delete a model that a job made, with all files that the job left."""
        result = get_made(request.user, name)
        if result is None and any(one.model_name == name for one in portal_catalogue().every_model):
            raise Refused(
                f"{name} is a base model of the portal; only models that jobs made are deleted here.",
                param="model", code="permission_denied", status=403,
            )  # fmt: skip
        if result is None:
            raise _unknown(name)
        delete_outputs(job=result.job, actor=request.user, now=database_now())
        return Response({"object": "model", "id": name, "deleted": True})


def _unknown(name: str) -> NotHere:
    return NotHere(
        f"There is no model {name[:200]} here; GET /v1/models lists those that you can train, and those"
        " that your jobs made.",
        param="model", code="model_not_found",
    )  # fmt: skip
