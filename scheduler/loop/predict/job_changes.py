"""Changes that let the waiting job that somebody looks at start sooner."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Goal, Option
from knowledge.core.explain.feasibility import PLACES
from knowledge.core.recommend.objectives import affordable, keeping
from knowledge.recommendations.recommender import RecommendationFailed, Recommender
from scheduler import hints
from scheduler.core.ahead.forecast import calibrated
from scheduler.core.changes.helpful import helpful_changes
from scheduler.core.changes.possible import OpenOptions, possible_changes
from scheduler.core.changes.stored import change_json
from scheduler.core.changes.terms import LaterDeadline, least_later_deadline
from scheduler.core.changes.trying import try_changes
from scheduler.core.eligibility import spot_nodes
from scheduler.errors import BadParameters
from scheduler.loop.predict.start_forecasts import play_input
from scheduler.models import ChangeSearch, Job
from scheduler.selectors.cluster.job_changes import is_fresh
from scheduler.selectors.figures.start_forecasts import judged_forecasts
from scheduler.selectors.figures.times import duration_s
from scheduler.services.forecasts.cpu_budget import CpuBudget
from scheduler.services.jobs.new_terms import as_changed, new_terms
from scheduler.services.jobs.objectives import objective_of
from scheduler.services.jobs.recommend import check, current_recommender
from scheduler.states import JobState
from trainer.recipes import RECIPES, Binds

log = logging.getLogger(__name__)
LOOKED_AT = timedelta(minutes=1)  # a job that nobody asked about for so long is not looked at any more
TROUBLE = "An internal error came between; the log of the worker has it. It is tried again in a minute."
OPENED = 4  # fixed values that are left open in turn


def find_next(now: datetime) -> ChangeSearch | None:
    """Answer who asked last; None if nobody waits for an answer."""
    searches = ChangeSearch.objects.filter(asked_at__gt=now - LOOKED_AT, job__state=JobState.QUEUED)
    waiting = [row for row in searches.select_related("job").order_by("-asked_at") if not is_fresh(row, now)]
    if not waiting:
        return None
    row, job = waiting[0], Job.objects.select_related("training_file", "validation_file")
    _answer(row, job.get(pk=row.job_id), now)
    if len(waiting) > 1:
        hints.find_changes()
    return row


def _answer(row: ChangeSearch, job: Job, now: datetime) -> None:
    """An error is an answer, too.

    Otherwise the same job would be looked at again, and no other one.
    """
    row.found, row.trouble, row.made_at, row.version = [], "", now, job.version
    try:
        row.found = _found(job, now)
    except Exception:
        log.exception("changes could not be found", extra={"job": job.pk})
        row.trouble = TROUBLE
    row.save(update_fields=["found", "trouble", "made_at", "version"])
    log.info("changes found", extra={"job": job.pk, "changes": len(row.found)})


def _found(job: Job, now: datetime) -> list[dict[str, Any]]:
    given = play_input(now)
    info = next((one for one in given.state.waiting if one.id == job.pk), None)
    if info is None:
        return []
    has_spot = bool(spot_nodes(given.state))
    possible = possible_changes(given, info, open_options(job, info.options, now, has_spot=has_spot))
    trials = try_changes(given, job.pk, possible, CpuBudget(settings.FORECAST_CPU_S).share)
    widths = judged_forecasts(given.policy.name)
    return [change_json(one) for one in helpful_changes(trials, job.pk, given.now, calibrated(widths))]


def open_options(
    job: Job, options: tuple[Option, ...], now: datetime, *, has_spot: bool = False
) -> OpenOptions:
    """The options that the job would have if less of it were fixed.

    has_spot: are there spot nodes that it might use?
    """
    recommender = current_recommender(spot=job.spot)
    on_spot: tuple[Option, ...] = ()
    if has_spot and not job.spot:
        on_spot = _with(job, {"spot": True}, current_recommender(spot=True), now)
    if not options:
        instead = _mending(job, recommender)
        mended = _with(job, _fixed(job, instead), recommender, now) if instead else ()
        return OpenOptions(instead=instead, mended=mended, spot=on_spot)
    dispatch = RECIPES[job.recipe].binding(Binds.DISPATCH)
    opened = {
        f"params.{name}": _with(job, _fixed(job, {name: None}), recommender, now)
        for name in [name for name in dispatch if name in job.fixed][:OPENED]
    }
    every: tuple[Option, ...] = ()
    if job.deadline_at:
        every = affordable(tuple(map(read_option, job.options)), job.budget, _promised_cost(job))
        every = keeping(every, None, job.budget)
    if job.deadline_at and job.goal != Goal.DEADLINE:
        opened["deadline_at"] = every
    return OpenOptions(
        anywhere=_with(job, _fixed(job, dict.fromkeys(PLACES)), recommender, now, within_budget=False),
        opened=opened,
        spot=on_spot,
        later=_later(job, options, every, recommender, now),
        ran_s=duration_s(list(job.attempts.all()), now),
    )


def _later(
    job: Job, options: tuple[Option, ...], every: tuple[Option, ...], recommender: Recommender, now: datetime
) -> LaterDeadline | None:
    at = least_later_deadline(now.timestamp(), options, every)
    if at is None:
        return None
    changed = {"deadline_at": datetime.fromtimestamp(at, UTC)}
    return LaterDeadline(at, _with(job, changed, recommender, now))


def _fixed(job: Job, params: Mapping[str, Any]) -> dict[str, Any]:
    """The column of its fixed values with others; None leaves a value open."""
    merged = {**job.fixed, **params}
    return {"fixed": {name: value for name, value in merged.items() if value is not None}}


def _mending(job: Job, recommender: Recommender) -> dict[str, Any]:
    """The smallest change of fixed values with which a node could run it."""
    try:
        found = check(
            recommender=recommender, model=job.model, params=job.fixed, training_file=job.training_file,
            validation_file=job.validation_file,
        )  # fmt: skip
    except (BadParameters, RecommendationFailed):
        return {}
    learnt = RECIPES[job.recipe].binding(Binds.SUBMIT)
    if job.fence and any(name in learnt for name in found.changes):
        return {}
    return {name: new for name, (_, new) in found.changes.items()}


def _with(
    job: Job,
    changed: Mapping[str, Any],
    recommender: Recommender,
    now: datetime,
    *,
    within_budget: bool = True,
) -> tuple[Option, ...]:
    """The job's options with these columns, as a snapshot would have them then."""
    try:
        columns = new_terms(job, changed, now, recommender)
    except BadParameters:
        return ()
    options, aim = tuple(map(read_option, columns["options"])), objective_of(as_changed(job, changed), now)
    if within_budget:
        promise = columns.get("promise")
        agreed = read_option(promise).cost.value if promise else _promised_cost(job)
        options = affordable(options, job.budget, agreed)
    return keeping(options, aim.deadline_s, aim.budget if within_budget else None)


def _promised_cost(job: Job) -> float | None:
    return job.promised.cost.value if job.promised else None
