"""Events and checkpoints of a job as objects of the contract."""

from __future__ import annotations

from typing import Any

from portal.events.models import Event
from portal.events.types import TYPES, EventType
from portal.openai.errors import Refused
from portal.openai.names import JOB, model_name, seconds
from portal.openai.pages import Source
from scheduler.models import Checkpoint, Job, Metric
from scheduler.selectors.checkpoints import of_job
from scheduler.selectors.jobs import events, metrics
from scheduler.selectors.results import figures_at, jobs_with_results
from trainer.step_metrics import STEP_METRICS

EVENT, STEPS, CHECKPOINT = "ftevent-", "ftevent-m", "ftckpt_"
T = EventType
LEVELS = dict.fromkeys((T.JOB_FAILED,), "error") | dict.fromkeys(
    (
        T.JOB_RETRYING, T.JOB_PREEMPTED, T.JOB_WARNING, T.JOB_DEADLINE_AT_RISK, T.JOB_CHECKPOINT_LOST,
        T.JOB_METRIC_LEFT_OUT, T.JOB_CANCEL_TOO_LATE,
    ),
    "warn",
)  # fmt: skip
# Step metrics for which programs look by another name.
METRIC_NAMES = {"loss": "train_loss", "eval_loss": "valid_loss"}


def _number(public_id: str, prefix: str) -> int | None:
    digits = public_id.removeprefix(prefix)
    known = digits != public_id and len(digits) == 15 and digits.isascii() and digits.isdigit()
    return int(digits) if known else None


def event_sources(job: Job) -> tuple[Source[Event], Source[Metric]]:
    """What happened to the job, and the figures of its steps."""
    happened = Source(events(job), "at", lambda one: _number(one, EVENT), _event)
    measured = Source(metrics(job), "at", lambda one: _number(one, STEPS), lambda row: _steps(row, job))
    return happened, measured


def _event(event: Event) -> dict[str, Any]:
    kind = EventType(event.type)
    words = TYPES[kind].text
    message = f"{words[0].upper()}{words[1:]}" + (f": {event.reason}" if event.reason else ".")
    return {
        "object": "fine_tuning.job.event",
        "id": f"{EVENT}{event.pk:015d}",
        "created_at": seconds(event.at),
        "level": LEVELS.get(kind, "info"),
        "message": message,
        "type": "message",
        "data": {"type": event.type, **event.data},
    }


def _steps(row: Metric, job: Job) -> dict[str, Any]:
    figures = figures_of(row)
    total = job.total_steps
    told = ", ".join(f"{name}={figures[name]:.4g}" for name in METRIC_NAMES.values() if name in figures)
    return {
        "object": "fine_tuning.job.event",
        "id": f"{STEPS}{row.pk:015d}",
        "created_at": seconds(row.at),
        "level": "info",
        "message": f"Step {row.step}/{total or '?'}: {told}",
        "type": "metrics",
        "data": {**figures, "total_steps": total},
    }


def figures_of(row: Metric) -> dict[str, Any]:
    """The step and its figures that are known, by the names of the contract."""
    values = {METRIC_NAMES.get(one.name, one.name): row.value(one) for one in STEP_METRICS}
    return {"step": row.step, **{name: value for name, value in values.items() if value is not None}}


def checkpoint_page(job: Job, *, after: str | None, limit: int) -> dict[str, Any]:
    """A page of the few checkpoints that are kept.

    The model of a job that succeeded is the last of them.
    """
    kept = list(of_job(job))
    figures = figures_at([(one.attempt_id, one.step) for one in kept])
    found = [_checkpoint(one, job, figures.get((one.attempt_id, one.step))) for one in kept]
    if jobs_with_results([job]):
        found.insert(0, _model(job))
    ids = [one["id"] for one in found]
    if after is not None and after not in ids:
        text = f"after: {after[:100]} is not the id of a checkpoint of this job."
        raise Refused(text, param="after", code="invalid")
    rest = found[ids.index(after) + 1 :] if after else found
    data = rest[:limit]
    return {
        "object": "list",
        "data": data,
        "has_more": len(rest) > limit,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }


def _checkpoint(row: Checkpoint, job: Job, measured: Metric | None) -> dict[str, Any]:
    return {
        "object": "fine_tuning.job.checkpoint",
        "id": f"{CHECKPOINT}{row.pk:015d}",
        "created_at": seconds(row.at),
        "step_number": row.step,
        "fine_tuned_model_checkpoint": model_name(job, row.step),
        "fine_tuning_job_id": job.pk,
        "metrics": figures_of(measured) if measured else {"step": row.step},
        "portal": {"stored": row.node.name if row.node else "portal"},
    }


def _model(job: Job) -> dict[str, Any]:
    return {
        "object": "fine_tuning.job.checkpoint",
        "id": CHECKPOINT + job.pk.removeprefix(JOB),
        "created_at": seconds(job.ended_at),
        "step_number": job.step,
        "fine_tuned_model_checkpoint": model_name(job),
        "fine_tuning_job_id": job.pk,
        "metrics": {"step": job.step, **({} if job.loss is None else {"train_loss": job.loss})},
        "portal": {"stored": "portal"},
    }
