"""The specification that a node needs to run a claim."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.catalogue import UnknownModel
from knowledge.core.domain.config_json import UnknownSizes, config_json
from scheduler.core.remaining_time import asked_run_s
from scheduler.models import Attempt, Claim, DatasetFile, Job
from trainer.protocol import RANDOM_MODEL, File, Resources, Resume, Spec
from trainer.recipes import RECIPES, Binds

NEVER_S = 1e9
TRAINING, VALIDATION = "train.jsonl", "validation.jsonl"


def spec_of(claim: Claim) -> Spec:
    """Return the spec of a claim.

    It holds the job's bound values, the attempt's configuration and this node's share.
    """
    attempt, job = claim.attempt, claim.attempt.job
    is_random = job.model.startswith(RANDOM_MODEL)
    indices = claim.allocations.order_by("gpu__index").values_list("gpu__index", flat=True)
    return Spec(
        job=job.pk,
        attempt=str(attempt.pk),
        claim=str(claim.pk),
        fence=attempt.fence,
        recipe=job.recipe,
        entry=RECIPES[job.recipe].entry,
        model=job.model,
        params=params_of(job, attempt),
        gpus=tuple(indices),
        resources=_resources(claim, len(indices)),
        rank=claim.rank,
        nodes=attempt.promised.nodes,
        inputs=_inputs(job),
        resume=_resume(attempt),
        # A run that measures speed alone is done again rather than resumed.
        checkpoint_every_s=NEVER_S if is_random else settings.CHECKPOINT_EVERY_S,
        upload_limit_bytes=settings.CHECKPOINT_UPLOAD_BYTES,
        hang_after_s=settings.HANG_AFTER_S,
        shape=_shape(job.model) if is_random else {},
    )


def _resources(claim: Claim, gpus: int) -> Resources:
    """Return what the claim's training is given.

    Of its node's cores and memory it has as much as of the GPUs.
    """
    attempt, node = claim.attempt, claim.node
    of_all = max(gpus, node.gpus.count())
    left = attempt.left(attempt.created_at)
    limits = [asked_run_s(left)] if left else []
    if attempt.stops_at:
        limits.append((attempt.stops_at - attempt.created_at).total_seconds())
    return Resources(
        nodes=attempt.promised.nodes,
        gpus_per_node=gpus,
        cores=max(1, node.cores * gpus // of_all),
        memory_bytes=max(1, node.memory_bytes * gpus // of_all),
        run_s=max(0.0, min(limits)) if limits else None,
        grace_s=settings.STOP_GRACE_S / 2,
    )


def _shape(model: str) -> dict[str, Any]:
    """Return the config.json of a model with random weights.

    It is empty where it cannot be made.
    """
    try:
        return config_json(portal_catalogue(model).model(model))
    except (UnknownModel, UnknownSizes):
        return {}


def params_of(job: Job, attempt: Attempt) -> dict[str, Any]:
    """Return every parameter of the recipe.

    Values bound at submission come first, then those of the option.
    """
    config = attempt.promised.config
    dispatch = {name: getattr(config, name) for name in RECIPES[job.recipe].binding(Binds.DISPATCH)}
    return {**job.params, **dispatch}


def _inputs(job: Job) -> tuple[File, ...]:
    named = [(TRAINING, job.training_file), (VALIDATION, job.validation_file)]
    return tuple(File(path=name, sha256=f.sha256, bytes=f.bytes) for name, f in named if f is not None)


def _resume(attempt: Attempt) -> Resume | None:
    checkpoint = attempt.resume_from
    if checkpoint is None:
        return None
    return Resume(
        step=checkpoint.step,
        stored="portal" if checkpoint.node_id is None else "node",
        claim=str(checkpoint.claim_id),
        files=tuple(File(**file) for file in checkpoint.files),
    )


def input_source(claim: Claim, name: str) -> DatasetFile | tuple[str, str, str] | None:
    """Return where an input of a claim lies.

    It is a data set, or (claim, path, SHA-256) of a checkpoint's artifact.
    """
    job = claim.attempt.job
    if name == TRAINING:
        return job.training_file
    if name == VALIDATION:
        return job.validation_file
    checkpoint = claim.attempt.resume_from
    path = name.removeprefix("resume/")
    digests = {file["path"]: file["sha256"] for file in checkpoint.files} if checkpoint else {}
    if checkpoint and path != name and path in digests:
        return str(checkpoint.claim_id), f"checkpoints/step-{checkpoint.step}/{path}", digests[path]
    return None
