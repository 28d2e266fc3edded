"""A job's promise after its goal, limits, nodes or fixed values have changed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from knowledge.core.domain.option_json import option_json, read_option
from knowledge.core.recommend.submit_defaults import user_choice
from knowledge.recommendations.recommender import Recommender
from scheduler.errors import BadParameters
from scheduler.models import Job
from scheduler.services.jobs import recommend
from scheduler.services.jobs.dependencies import check_order
from scheduler.services.jobs.objectives import FARTHEST, aim_of_request, objective_of
from scheduler.services.jobs.terms.spot import spot_terms
from scheduler.states import WaitState
from trainer.recipes import RECIPES, Binds

A_MOMENT = timedelta(seconds=1)


def new_terms(
    job: Job, changed: Mapping[str, Any], now: datetime, recommender: Recommender | None = None
) -> dict[str, Any]:
    """Return the columns that follow from what has changed.

    A job that never started is promised anew; what changes how it learns stays as it was bound, unless the
    person changes it or nothing else can run. One that ran before keeps its promise, and has other options.
    Raises BadParameters.
    """
    after = as_changed(job, changed)
    _check_limits(job, after, changed, now)
    recommender = recommender or recommend.current_recommender(spot=after.spot)
    columns = _again(after, recommender, now) if job.fence else _anew(job, after, recommender, now)
    if after.spot:
        promise = columns.get("promise", job.promise)
        spot_terms(requested=True, deadline_at=after.deadline_at, promise=promise, model=job.model)
    return {**columns, "options_for": recommend.options_digest(recommender)}


def as_changed(job: Job, changed: Mapping[str, Any]) -> Job:
    """A copy of the job with these columns, which is never saved."""
    after = copy(job)
    for name, value in changed.items():
        setattr(after, name, value)
    return after


def _check_limits(job: Job, after: Job, changed: Mapping[str, Any], now: datetime) -> None:
    """A deadline that has passed, or is too far, is an error only if it is a new one."""
    old = after.deadline_at if "deadline_at" not in changed else None
    aim_of_request(
        goal=after.goal,
        deadline_at=after.deadline_at,
        budget=after.budget,
        now=min(max(now, old - FARTHEST), old - A_MOMENT) if old else now,
    )
    if "deadline_at" in changed:
        to_come = job.begin_at if job.begin_at and job.begin_at > now else None
        check_order(begin_at=to_come, deadline_at=after.deadline_at, after=(), now=now)


def _anew(job: Job, after: Job, recommender: Recommender, now: datetime) -> dict[str, Any]:
    """The columns of a recommendation for a job that has never started."""
    learnt = RECIPES[job.recipe].binding(Binds.SUBMIT)
    same = all(after.fixed.get(name) == job.fixed.get(name) for name in learnt)
    bound = {name: value for name, value in job.params.items() if value is not None}
    found = _recommended(after, {**bound, **after.fixed}, recommender, now) if same else None
    if found and found["options"]:
        kept = {name: choice for name, choice in job.chosen.items() if name in learnt}
        return {**found, "params": job.params, "chosen": {**found["chosen"], **kept}}
    return _recommended(after, after.fixed, recommender, now)


def _recommended(
    job: Job, fixed: Mapping[str, Any], recommender: Recommender, now: datetime
) -> dict[str, Any]:
    workload = recommend.workload_of(
        model=job.model, training_file=job.training_file, validation_file=job.validation_file
    )
    return recommend.recommended_columns(
        recommend.recommend_or_default(
            recommender,
            model=job.model,
            fixed=fixed,
            workload=workload,
            aim=objective_of(job, now),
            recipe=job.recipe,
        )
    )


def _again(job: Job, recommender: Recommender, now: datetime) -> dict[str, Any]:
    """The columns of other options for a job that ran before.

    It prefers the one it ran with only if that is still among them.
    """
    options = recommend.options_for(job, recommender, now)
    if not options and job.less_memory_than is not None:
        why = "leaves no configuration that needs less memory than the one that ran out; leave it open"
        raise BadParameters({f"params.{name}": why for name in job.fixed} or {"params": why})
    before = read_option(job.binding).place if job.binding else None
    chosen = {
        name: choice for name, choice in job.chosen.items() if choice["by"] != "user" or name in job.fixed
    }
    waits = {"wait_code": "", "wait_text": ""} if job.wait_code == WaitState.OPTIONS else {}
    return {
        "options": [option_json(option) for option in options],
        "binding": job.binding if before in {option.place for option in options} else None,
        "chosen": {**chosen, **{name: asdict(user_choice(value)) for name, value in job.fixed.items()}},
        **waits,
    }
