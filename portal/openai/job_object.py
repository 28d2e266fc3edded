"""A job as an object of the contract."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from knowledge.core.recommend.submit_defaults import base_learning_rate
from portal.api.jobs.resources import JobBrief
from portal.api.jobs.resources.promises import promise_fields
from portal.openai.names import model_name, organization_id, result_id, seconds
from scheduler.models import Job
from scheduler.selectors.figures.times import ending, since
from scheduler.selectors.figures.training import attempt_that_counts
from scheduler.selectors.public_states import shown_state
from scheduler.selectors.results import jobs_with_results
from scheduler.selectors.silence import silent_since

ENDED = frozenset({"succeeded", "failed", "cancelled"})  # as the contract shows them
AUTO = "auto"


def job_object(job: Job, *, now: datetime) -> dict[str, Any]:
    return job_objects([job], now=now)[0]


def job_objects(jobs: Collection[Job], *, now: datetime) -> list[dict[str, Any]]:
    """The jobs' objects; one query for all beside those that read the jobs."""
    results = jobs_with_results(jobs)
    brief = JobBrief(context={"now": now})
    return [_object(job, brief, now, has_result=job.pk in results) for job in jobs]


def _object(job: Job, brief: JobBrief, now: datetime, *, has_result: bool) -> dict[str, Any]:
    status = shown_state(job)  # the portal's own words are the contract's
    values = hyperparameters(job.model, job.params, job.training_file.rows)
    return {
        "object": "fine_tuning.job",
        "id": job.pk,
        "created_at": seconds(job.submitted_at),
        "finished_at": seconds(job.ended_at or since(job)) if status in ENDED else None,
        "estimated_finish": _estimated_finish(job, now),
        "status": status,
        "model": job.model,
        "fine_tuned_model": model_name(job) if has_result else None,
        "training_file": job.training_file_id,
        "validation_file": job.validation_file_id,
        "result_files": [result_id(job.pk)] if has_result else [],
        "hyperparameters": values,
        "method": {"type": "supervised", "supervised": {"hyperparameters": values}},
        "trained_tokens": _trained_tokens(job) if status == "succeeded" else None,
        "seed": job.params.get("seed"),
        "error": _error(job) if status == "failed" else None,
        "integrations": [],
        "metadata": job.metadata,
        "organization_id": organization_id(job),
        "portal": extras(job, brief),
    }


def hyperparameters(model: str, params: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """The values that are used, of data with so many rows.

    A batch that follows from the GPUs is `auto` until there are some.
    """
    batch = params.get("effective_batch_size")
    return {
        "n_epochs": _epochs(params, batch, rows),
        "batch_size": AUTO if batch is None else batch,
        "learning_rate_multiplier": multiplier(params["learning_rate"], base_rate(model, params)),
    }


def base_rate(model: str, params: Mapping[str, Any]) -> float:
    """The learning rate that the multiplier multiplies."""
    return base_learning_rate(model, params.get("tuning") or "lora")


def multiplier(rate: float, base: float) -> float:
    return float(f"{rate / base:.6g}")


def _epochs(params: Mapping[str, Any], batch: int | None, rows: int) -> int:
    """Whole passes over the data, as the contract counts them.

    A part of one counts as one.
    """
    epochs = params.get("epochs")
    if epochs is None:
        epochs = (params.get("max_steps") or 1) * (batch or 1) / max(1, rows)
    return max(1, math.ceil(epochs))


def _estimated_finish(job: Job, now: datetime) -> int | None:
    expected = ending(job, list(job.attempts.all()), now, silent=silent_since(job, now) is not None)
    return seconds(expected.at) if expected else None


def _trained_tokens(job: Job) -> int | None:
    attempt = attempt_that_counts(list(job.attempts.all()))
    tokens = attempt.figures.tokens if attempt else None
    return None if tokens is None else int(tokens)


def _error(job: Job) -> dict[str, Any]:
    code = job.failure_code or (f"{job.failure_class}_error" if job.failure_class else "error")
    return {"code": code, "message": job.failure_reason or "The job failed.", "param": None}


def extras(job: Job, brief: JobBrief) -> dict[str, Any]:
    """The job as /api/jobs/ lists it, with its promise and parameters."""
    return {
        **brief.to_representation(job),
        "params": job.params,
        "base_learning_rate": base_rate(job.model, job.params),
        "promise": promise_fields(job.promised) if job.promised else None,
        "links": {
            "page": f"/jobs/{job.pk}/",
            "api": f"/api/jobs/{job.pk}/",
            "explanation": f"/v1/fine_tuning/jobs/{job.pk}/explanation",
        },
    }
