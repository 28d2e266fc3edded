"""A job's request, as `POST /api/jobs/` takes it once more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from knowledge.core.recommend.objectives import needed_limit
from scheduler.core.job_terms import JOB_TERMS, JobTerm, Kind, wants_spot
from scheduler.models import Job, JobDependency
from scheduler.selectors.dependencies import to_come_after
from trainer.recipes import RECIPES


def request_of(job: Job, now: datetime, *, resolved: bool = False) -> dict[str, Any]:
    """Return the owner's request for a job.

    What was left out, or has passed meanwhile, stays out, and with a deadline the goal to keep it.
    resolved: with all parameters as they were chosen; else what the owner left open is recommended again.
    """
    values = {name: _own(job, term, now) for name, term in JOB_TERMS.items()}
    if job.spot == wants_spot({"deadline_at": job.deadline_at}):
        values["spot"] = None
    if (limit := needed_limit(job.goal, deadline="deadline_at")) and values[limit] is None:
        values["goal"] = None
    if resolved:
        values["params"] = _resolved(job)
    return {name: value for name, value in values.items() if value not in (None, "", [], {}, _usual(name))}


def _resolved(job: Job) -> dict[str, Any]:
    """All parameters of the recipe that the job was submitted with."""
    chosen = {name: choice["value"] for name, choice in job.chosen.items()}
    known = RECIPES[job.recipe].params
    found = {**chosen, **job.fixed}
    return {name: value for name, value in found.items() if name in known and value is not None}


def _own(job: Job, term: JobTerm, now: datetime) -> Any:
    """The job's own value as a request has it."""
    if term.kind is Kind.EARLIER:
        return [_after(one) for one in to_come_after(job)]
    value = term.of(job)
    if term.kind is Kind.MOMENT:  # one that has passed means nothing any more
        return value if value and value > now else None
    return term.word(value)


def _usual(name: str) -> Any:
    """The word of a term that is left out."""
    return JOB_TERMS[name].word(JOB_TERMS[name].default)


def _after(dependency: JobDependency) -> dict[str, str]:
    if dependency.on_array_id:
        return {"array": dependency.on_array_id, "kind": dependency.kind}
    return {"job": dependency.on_id or "", "kind": dependency.kind}
