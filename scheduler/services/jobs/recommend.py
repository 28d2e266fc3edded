"""Predictions for submissions and options for dispatch.

A recommendation that fails never blocks a submission: the job then gets one option of stated defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from django.conf import settings

from knowledge.catalogue.hub_models import OnHub, is_hub_id, on_hub
from knowledge.catalogue.portal_catalogue import known_model, portal_catalogue
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.catalogue import BYTES_PER_TOKEN, Catalogue, UnknownGpu, UnknownModel
from knowledge.core.domain.config_space import why_not_four_bits, why_too_long
from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Goal, Option, Recommendation, Workload
from knowledge.core.explain.feasibility import Check
from knowledge.core.recommend import duration
from knowledge.recommendations.alike_recommender import AlikeRecommender
from knowledge.recommendations.recommender import RecommendationFailed, Recommender
from scheduler.errors import BadParameters
from scheduler.models import DatasetFile, Job
from scheduler.selectors.cluster.inventory import digest_of, inventory
from scheduler.services.jobs.objectives import Objective, aim_of_request, objective_of
from scheduler.states import JobState
from trainer import roots
from trainer.protocol import RANDOM_MODEL
from trainer.protocol_parsing import safe_path
from trainer.recipes import DEFAULT_RECIPE, RECIPES, ParamError

# The terms of a request that a recommendation looks at.
USED = ("model", "training_file", "validation_file", "recipe", "params", "goal", "deadline_at", "budget")
_FOUR_BITS = {"tuning": "qlora", "quantization": "bnb-4bit"}


def clean_request(
    *, model: str, params: Mapping[str, Any], recipe: str = DEFAULT_RECIPE.name
) -> dict[str, Any]:
    """The values a user fixed, checked. Raises BadParameters naming every wrong field."""
    wrong_name = _model_error(model)
    errors = {"model": wrong_name} if wrong_name else {}
    if recipe not in RECIPES:
        raise BadParameters({"recipe": f"must be one of {', '.join(RECIPES)}", **errors})
    catalogue = portal_catalogue() if wrong_name else portal_catalogue(model)
    if not wrong_name and (unknown_name := _unknown_model(model, catalogue)):
        errors["model"] = unknown_name
    fixed: dict[str, Any] = {}
    try:
        fixed = RECIPES[recipe].clean(params)
        errors.update(_tuning_error(model, fixed, catalogue))
        if why := why_too_long(model, fixed.get("tokens_per_sample", 0), catalogue):
            errors["params.tokens_per_sample"] = why
        if "gpu_model" in fixed:
            fixed["gpu_model"] = catalogue.gpu(fixed["gpu_model"]).gpu_model
    except ParamError as wrong:
        errors.update({f"params.{name}": message for name, message in wrong.fields.items()})
    except UnknownGpu as unknown:
        errors["params.gpu_model"] = str(unknown)
    if errors:
        raise BadParameters(errors)
    return fixed


def _tuning_error(model: str, fixed: Mapping[str, Any], catalogue: Catalogue) -> dict[str, str]:
    """The reason why no node can train this model."""
    fixed_names = [name for name, value in _FOUR_BITS.items() if fixed.get(name) == value]
    why = why_not_four_bits(model, catalogue) if fixed_names else ""
    return {f"params.{fixed_names[0]}": why} if why else {}


def _model_error(model: str) -> str:
    """Return why no node could load a model of this name, with the remedy.

    It is empty if a node might.
    """
    if not model or len(model) > 300 or not model.isprintable():
        return "must be a model name, a hub id or a directory, at most 300 characters"
    if "://" in model:
        return "is an address; give the hub id alone, such as meta-llama/Llama-3.1-8B"
    shipped = (entry.model_name for entry in shipped_catalogue().shipped_models)
    builtin = [name for name in shipped if name.startswith("builtin/")]
    if model.lower().startswith("builtin/") and model not in builtin:
        return f"There is no model {model}; builtin are {', '.join(builtin)}."
    if safe_path(model) and model.removeprefix(RANDOM_MODEL).count("/") > 1:
        return "has too many parts; a hub id has an organisation and a name, such as meta-llama/Llama-3.1-8B"
    # One answer for all that is not listed: whether it exists is nobody's to learn.
    if not safe_path(model) and roots.find(model, settings.MODEL_ROOTS) is None:
        return "must be builtin/NAME, a hub id, or an absolute directory below the MODEL_ROOTS of the portal"
    return ""


def _unknown_model(model: str, catalogue: Catalogue) -> str:
    """Say why the name is no model.

    It may be a plain one, told with the nearest ones, or one that the hub does not have.
    """
    try:
        if "/" not in model:
            catalogue.model(model)
    except UnknownModel as unknown:
        return str(unknown)
    if is_hub_id(model, catalogue) and on_hub(model) is OnHub.MISSING:
        return (
            f"The hub at {settings.HF_ENDPOINT} shows no model {model}: check the spelling. If it is private,"
            " an administrator gives the portal a HF_TOKEN or adds the model to the catalogue."
        )
    return ""


def _unchecked(model: str) -> tuple[str, ...]:
    """A note where nobody could say whether the model exists."""
    if not is_hub_id(model, portal_catalogue(model)) or on_hub(model) is not OnHub.UNCHECKED:
        return ()
    return (
        f"Unchecked: the hub at {settings.HF_ENDPOINT} cannot be reached from here, so whether {model} exists"
        " shows only when a node loads it; if it does not, the job fails then.",
    )


def workload_of(*, model: str, training_file: DatasetFile, validation_file: DatasetFile | None) -> Workload:
    """The training data in tokens, estimated from bytes: the portal has no tokenizer."""
    known = known_model(model)
    per_token = known.bytes_per_token if known else BYTES_PER_TOKEN
    lengths = tuple((max(1, round(size / per_token)), int(rows)) for size, rows in training_file.lengths)
    return Workload(
        rows=training_file.rows,
        lengths=lengths,
        validation_rows=validation_file.rows if validation_file else 0,
    )


def current_recommender(*, spot: bool = False) -> Recommender:
    """Return a recommender for the registered nodes and present knowledge.

    One recommender answers a whole request, so that all answers agree.
    spot: for jobs that may use spot nodes.
    """
    return Recommender.of(inventory(spot=spot))


def recommender_of_array(*, spot: bool = False) -> Recommender:
    """Return a recommender for many requests that are much alike."""
    return AlikeRecommender.of(inventory(spot=spot))


def recommend(
    *,
    recommender: Recommender,
    model: str,
    training_file: DatasetFile,
    validation_file: DatasetFile | None = None,
    params: Mapping[str, Any],
    recipe: str = DEFAULT_RECIPE.name,
    goal: str = Goal.BALANCED,
    deadline_at: datetime | None = None,
    budget: float | None = None,
    now: datetime,
) -> Recommendation:
    """Return a recommendation for a form or a program; nothing is stored.

    Raises BadParameters.
    """
    fixed = clean_request(model=model, params=params, recipe=recipe)
    aim = aim_of_request(goal=goal, deadline_at=deadline_at, budget=budget, now=now)
    workload = workload_of(model=model, training_file=training_file, validation_file=validation_file)
    return recommend_or_default(
        recommender, model=model, fixed=fixed, workload=workload, aim=aim, recipe=recipe
    )


def check(
    *,
    recommender: Recommender,
    model: str,
    training_file: DatasetFile,
    validation_file: DatasetFile | None = None,
    params: Mapping[str, Any],
    recipe: str = DEFAULT_RECIPE.name,
) -> Check:
    """Check whether the values fixed by `params` fit the present nodes.

    If they do not, the smallest change that makes them fit is named. Raises BadParameters, also
    where the model's shape is unknown or nothing can be predicted now.
    """
    fixed = clean_request(model=model, params=params, recipe=recipe)
    workload = workload_of(model=model, training_file=training_file, validation_file=validation_file)
    try:
        portal_catalogue(model).model(model)
        return recommender.check(model=model, fixed=fixed, workload=workload, recipe=recipe)
    except (UnknownModel, RecommendationFailed) as cannot:
        raise BadParameters({"model": f"nothing can be predicted: {cannot}"}) from cannot


def recommend_or_default(
    recommender: Recommender,
    *,
    model: str,
    fixed: Mapping[str, Any],
    workload: Workload,
    aim: Objective,
    recipe: str,
) -> Recommendation:
    """Return a recommendation, or stated defaults when it fails.

    Raises BadParameters for an unknown model.
    """
    try:
        found = recommender.recommend(
            model=model, fixed=fixed, workload=workload, recipe=recipe, **_limits(aim)
        )
    except UnknownModel as unknown:
        raise BadParameters({"model": str(unknown)}) from unknown
    except RecommendationFailed:
        found = recommender.default_recommendation(model=model, fixed=fixed, workload=workload, recipe=recipe)
    return replace(found, notes=(*found.notes, *_unchecked(model)))


def _limits(aim: Objective) -> dict[str, Any]:
    return {"goal": aim.goal, "deadline_s": aim.deadline_s, "budget": aim.budget}


def repredict(*, job: Job, promised: Option, row_tokens: float, startup_s: float) -> Option:
    """Compute the promise again with the trainer's exact count and real start-up time.

    The start-up is the one that the attempt really took.
    row_tokens: tokens of all rows of one epoch, each cut at the configuration's length.
    """
    estimate = workload_of(model=job.model, training_file=job.training_file, validation_file=None)
    limit = promised.config.tokens_per_sample
    estimated = sum(min(length, limit) * rows for length, rows in estimate.lengths)
    factor = row_tokens / estimated if estimated else 1.0
    exact = replace(
        estimate, lengths=tuple((max(1, round(n * factor)), rows) for n, rows in estimate.lengths)
    )
    return duration.repredict(promised, model=known_model(job.model), data=exact, startup_s=startup_s)


def options_digest(recommender: Recommender) -> str:
    """Names the nodes and the predictor that the recommender's options belong to."""
    return digest_of(recommender.inventory, recommender.version)


def options_for(job: Job, recommender: Recommender, now: datetime) -> tuple[Option, ...]:
    """The job's options, best first; after running out of memory only smaller ones.

    Options within the job's deadline, counted from `now`, and its budget come before the others.
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
            recipe=job.recipe,
        )
    except (UnknownModel, RecommendationFailed):  # the former: it left the catalogue meanwhile
        if job.less_memory_than is not None:
            return ()
        return recommender.default_options(
            model=job.model, bound=job.params, fixed=job.fixed, workload=workload, recipe=job.recipe
        )


def recommended_columns(recommendation: Recommendation) -> dict[str, Any]:
    """A recommendation as the columns of a job."""
    return {
        "params": recommendation.bound,
        "chosen": {name: asdict(choice) for name, choice in recommendation.chosen.items()},
        "options": [option_json(option) for option in recommendation.options],
        "promise": option_json(recommendation.best) if recommendation.best else None,
        "evidence": [asdict(near) for near in recommendation.evidence],
        "notes": list(recommendation.notes),
        "predictor_version": recommendation.predictor_version,
    }


def waiting_with_stale_options(digest: str, *, spot: bool) -> list[Job]:
    """Return queued jobs whose options are stale, oldest first.

    spot: those that may use spot nodes, or the others.
    Their options were made for other nodes or another predictor.
    """
    stale = Job.objects.filter(state=JobState.QUEUED, spot=spot).exclude(options_for=digest)
    return list(stale.select_related("training_file", "validation_file").order_by("submitted_at")[:500])
