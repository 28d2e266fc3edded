"""Forecasts for submissions and options for dispatch.

Advice that fails never blocks a submission: the job then gets one option of stated defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from django.conf import settings

from knowledge.core.domain import catalogue
from knowledge.core.domain.config_space import why_not_four_bits
from knowledge.core.domain.types import Advice, Goal, Option, Workload
from knowledge.core.explain.feasibility import Check
from knowledge.core.recommend import duration
from knowledge.recommender import AdviceFailed, Recommender
from scheduler.errors import BadParameters
from scheduler.models import DatasetFile, Job
from scheduler.selectors.cluster.inventory import digest_of, inventory
from scheduler.services.jobs.objectives import Objective, aim_of_request, objective_of
from scheduler.states import JobState
from trainer import roots
from trainer.protocol_parsing import safe_path
from trainer.recipes import RECIPES, ParamError

_FOUR_BITS = {"method": "qlora", "quantization": "bnb-4bit"}


def clean_request(*, model: str, params: Mapping[str, Any], recipe: str = "sft") -> dict[str, Any]:
    """The values a user fixed, checked. Raises BadParameters naming every wrong field."""
    wrong_name = _model_error(model)
    errors = {"model": wrong_name} if wrong_name else {}
    fixed: dict[str, Any] = {}
    try:
        fixed = RECIPES[recipe].clean(params)
        errors.update(_method_error(model, fixed))
        if "gpu_model" in fixed:
            fixed["gpu_model"] = catalogue.gpu(fixed["gpu_model"]).gpu_model
    except ParamError as wrong:
        errors.update({f"params.{name}": message for name, message in wrong.fields.items()})
    except catalogue.UnknownGpu as unknown:
        errors["params.gpu_model"] = str(unknown)
    if errors:
        raise BadParameters(errors)
    return fixed


def _method_error(model: str, fixed: Mapping[str, Any]) -> dict[str, str]:
    """The reason why no node can train this model."""
    asked = [name for name, value in _FOUR_BITS.items() if fixed.get(name) == value]
    why = why_not_four_bits(model) if asked else ""
    return {f"params.{asked[0]}": why} if why else {}


def _model_error(model: str) -> str:
    """Why no node could load a model of this name, with the remedy; empty if one might."""
    if not model or len(model) > 300 or not model.isprintable():
        return "must be a model name, a hub id or a directory, at most 300 characters"
    if "://" in model:
        return "is an address; give the hub id alone, such as meta-llama/Llama-3.1-8B"
    builtin = [name for name in catalogue.model_names() if name.startswith("builtin/")]
    if model.lower().startswith("builtin/") and model not in builtin:
        return f"There is no model {model}; builtin are {', '.join(builtin)}."
    # One answer for all that is not listed: whether it exists is nobody's to learn.
    if not safe_path(model) and roots.find(model, settings.MODEL_ROOTS) is None:
        return "must be builtin/NAME, a hub id, or an absolute directory below the MODEL_ROOTS of the portal"
    return ""


def workload_of(*, model: str, training_file: DatasetFile, validation_file: DatasetFile | None) -> Workload:
    """The training data in tokens, estimated from bytes: the portal has no tokenizer."""
    try:
        per_token = catalogue.model(model).bytes_per_token
    except catalogue.UnknownModel:
        per_token = catalogue.BYTES_PER_TOKEN
    lengths = tuple((max(1, round(size / per_token)), int(rows)) for size, rows in training_file.lengths)
    return Workload(
        rows=training_file.rows,
        lengths=lengths,
        validation_rows=validation_file.rows if validation_file else 0,
    )


def current_recommender() -> Recommender:
    """On the registered nodes, by what is known now; one answers a whole request, so that all agrees."""
    return Recommender.of(inventory())


def recommend(
    *,
    recommender: Recommender,
    model: str,
    training_file: DatasetFile,
    validation_file: DatasetFile | None = None,
    params: Mapping[str, Any],
    goal: str = Goal.BALANCED,
    deadline_at: datetime | None = None,
    budget: float | None = None,
    now: datetime,
) -> Advice:
    """A recommendation for a form or a program; nothing is stored. Raises BadParameters."""
    fixed = clean_request(model=model, params=params)
    aim = aim_of_request(goal=goal, deadline_at=deadline_at, budget=budget, now=now)
    workload = workload_of(model=model, training_file=training_file, validation_file=validation_file)
    return advise(recommender, model=model, fixed=fixed, workload=workload, aim=aim)


def check(
    *,
    recommender: Recommender,
    model: str,
    training_file: DatasetFile,
    validation_file: DatasetFile | None = None,
    params: Mapping[str, Any],
) -> Check:
    """Does what `params` fix fit the present nodes, and which smallest change makes it fit?

    Raises BadParameters, also where the model's shape is unknown or nothing can be foretold now.
    """
    fixed = clean_request(model=model, params=params)
    workload = workload_of(model=model, training_file=training_file, validation_file=validation_file)
    try:
        catalogue.model(model)
        return recommender.check(model=model, fixed=fixed, workload=workload)
    except (catalogue.UnknownModel, AdviceFailed) as cannot:
        raise BadParameters({"model": f"nothing can be foretold: {cannot}"}) from cannot


def advise(
    recommender: Recommender, *, model: str, fixed: Mapping[str, Any], workload: Workload, aim: Objective
) -> Advice:
    """A recommendation, or stated defaults when it fails. Raises BadParameters for an unknown model."""
    try:
        return recommender.recommend(model=model, fixed=fixed, workload=workload, **_limits(aim))
    except catalogue.UnknownModel as unknown:
        raise BadParameters({"model": str(unknown)}) from unknown
    except AdviceFailed:
        return recommender.default_advice(model=model, fixed=fixed, workload=workload)


def _limits(aim: Objective) -> dict[str, Any]:
    return {"goal": aim.goal, "deadline_s": aim.deadline_s, "budget": aim.budget}


def reforecast(*, job: Job, promised: Option, row_tokens: float, startup_s: float) -> Option:
    """The promise again with the trainer's exact count and the start-up that the attempt really took.

    `row_tokens`: tokens of all rows of one epoch, each cut at the configuration's length.
    """
    estimate = workload_of(model=job.model, training_file=job.training_file, validation_file=None)
    limit = promised.config.tokens_per_sample
    estimated = sum(min(length, limit) * rows for length, rows in estimate.lengths)
    factor = row_tokens / estimated if estimated else 1.0
    exact = replace(
        estimate, lengths=tuple((max(1, round(n * factor)), rows) for n, rows in estimate.lengths)
    )
    return duration.reforecast(promised, data=exact, startup_s=startup_s)


def options_digest(recommender: Recommender) -> str:
    """Names the nodes and the predictor that the recommender's options belong to."""
    return digest_of(recommender.inventory, recommender.version)


def options_for(job: Job, recommender: Recommender, now: datetime) -> tuple[Option, ...]:
    """The job's options, best first; after running out of memory only smaller ones.

    Those within the job's deadline, counted from `now`, and its budget come before the others.
    """
    workload = workload_of(
        model=job.model, training_file=job.training_file, validation_file=job.validation_file
    )
    try:
        return recommender.options(
            model=job.model,
            bound=job.params,
            fixed=job.fixed,
            workload=workload,
            **_limits(objective_of(job, now)),
            less_memory_than=job.less_memory_than,
        )
    except (catalogue.UnknownModel, AdviceFailed):  # the former: it left the catalogue meanwhile
        if job.less_memory_than is not None:
            return ()
        return recommender.default_options(
            model=job.model, bound=job.params, fixed=job.fixed, workload=workload
        )


def chosen_json(advice: Advice) -> dict[str, Any]:
    """The source and reason of each value, to be stored with the job."""
    return {name: asdict(choice) for name, choice in advice.chosen.items()}


def waiting_with_stale_options(digest: str) -> list[Job]:
    """Queued jobs whose options were made for other nodes or another predictor, oldest first."""
    stale = Job.objects.filter(state=JobState.QUEUED).exclude(options_for=digest)
    return list(stale.select_related("training_file", "validation_file").order_by("submitted_at")[:500])
