"""Plans: requests with what was recommended, kept until they are submitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from math import inf
from typing import Any, NamedTuple

from knowledge.core.domain.option_json import INTERVALS, option_json
from knowledge.core.domain.types import Interval, Option, Recommendation
from knowledge.core.domain.wording import money
from knowledge.recommendations.recommender import Recommender
from portal.accounts.models import User
from scheduler.core.job_terms import wants_spot
from scheduler.errors import BadParameters, PlanOutdated
from scheduler.models import Job, JobPlan
from scheduler.services.idempotency import Creation, unkeyed
from scheduler.services.jobs import recommend
from scheduler.services.jobs.request_json import read_request, request_json
from scheduler.services.jobs.verbs import check_request, prepare, recommend_for, submitted
from scheduler.services.provenance.read_values import ReadValues

KEPT_FOR = timedelta(hours=24)
MOST_KEPT = 1000  # of a person; the oldest go


class Planned(NamedTuple):
    """A recommendation, and the plan under which it is kept."""

    recommendation: Recommendation
    plan: JobPlan


def plan_job(*, owner: User, now: datetime, read: Sequence[ReadValues] = (), **request: Any) -> Planned:
    """Recommend everything that a request leaves open, and keep that for a day.

    request, read: as `submit_job` takes them. Raises BadParameters.
    """
    terms = check_request(owner=owner, now=now, **request)
    recommender = recommend.current_recommender(spot=wants_spot(request))
    found = recommend_for(recommender, terms, request)
    plan = JobPlan.objects.create(
        owner=owner,
        made_at=now,
        request=request_json(request),
        read=[one.as_json() for one in read],
        recommended=recommend.recommended_columns(found),
        options_for=recommend.options_digest(recommender),
    )
    kept = JobPlan.objects.filter(owner=owner).order_by("-made_at")
    if beyond := list(kept.values_list("pk", flat=True)[MOST_KEPT : MOST_KEPT + 100]):
        JobPlan.objects.filter(pk__in=beyond).delete()
    return Planned(found, plan)


def submit_plan(
    *, owner: User, plan: str, now: datetime, creation: Creation = unkeyed, token: str = ""
) -> Job:
    """Store a job with exactly the parameters and the promise of a plan.

    Raises BadParameters where the plan, or something that it names, is not the person's any more, and
    PlanOutdated where the same job would now be promised something outside the plan's own intervals.
    """
    kept = JobPlan.objects.filter(owner=owner, pk=plan, made_at__gt=now - KEPT_FOR).first()
    if kept is None:
        raise BadParameters({"plan": "is not a plan of yours of the last 24 hours; ask for a new one"})
    request = read_request(owner, kept.request)
    recommender = recommend.current_recommender(spot=wants_spot(request))
    read = [ReadValues.from_json(one) for one in kept.read]
    prepared = prepare(
        recommender, owner=owner, now=now, read=read, token=token, recommended=kept.recommended, **request
    )
    if kept.options_for != recommend.options_digest(recommender):
        _renew_options(prepared.job, recommender, now)
    return submitted(prepared, creation)


def forget_old_plans(now: datetime) -> int:
    """Delete plans that nobody may submit any more, and return their number."""
    return JobPlan.objects.filter(made_at__lte=now - KEPT_FOR).delete()[0]


def _renew_options(job: Job, recommender: Recommender, now: datetime) -> None:
    """Give a job that is not stored yet the options of now.

    Raises PlanOutdated where they do not keep its promise.
    """
    options = recommend.options_for(job, recommender, now)
    if job.promised:
        here = [option for option in options if option.key == job.promised.key] or options
        if difference := list(_difference(job.promised, next(iter(here), None))):
            why = _sentence(difference)
            raise PlanOutdated(f"What the plan promised holds no more: {why}. Make a new plan.", difference)
    job.options = [option_json(option) for option in options]


def _difference(promised: Option, present: Option | None) -> Iterator[dict[str, Any]]:
    """The figures that have left their own intervals.

    present: None if no node could run the job any more.
    """
    for name in INTERVALS:
        interval: Interval = getattr(promised, name)
        value = getattr(present, name).value if present else None
        low = -inf if interval.low is None else interval.low
        high = inf if interval.high is None else interval.high
        if value is None or not low <= value <= high:
            yield {"name": name, "promised": asdict(interval), "now": value}


def _sentence(difference: Sequence[Mapping[str, Any]]) -> str:
    """What has changed, for the plan's owner."""
    if difference[0]["now"] is None:
        return "no node could run the job any more"
    return "; ".join(
        f"{one['name']} was {money(one['promised']['value'], '')} and would be {money(one['now'], '')}"
        for one in difference
    )
