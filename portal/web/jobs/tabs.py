"""The tabs of a job's page; each reads only its own rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast

from django.http import HttpRequest

from knowledge.reading.logs.questions import QUESTIONS
from portal.accounts.models import User
from portal.events.types import CHANGES
from portal.web.charts.markets import lanes_chart
from portal.web.jobs.changes.forms import ChangeForm, FrontForm, HoldForm
from portal.web.jobs.log import LogSearch
from portal.web.jobs.resubmit import as_curl
from scheduler.models import Job, JobArray
from scheduler.selectors.analysis.failures import kept_causes
from scheduler.selectors.analysis.log_questions import past_questions
from scheduler.selectors.analysis.readings import own_reading
from scheduler.selectors.analysis.similar_jobs import LikeJobs, facts_of_job, similar_jobs
from scheduler.selectors.checkpoints import of_job
from scheduler.selectors.decisions import decisions_of, explain
from scheduler.selectors.dependencies import dependencies_of
from scheduler.selectors.figures.cost import cost_so_far
from scheduler.selectors.figures.promise import (
    comparison,
    comparison_with_submission,
    is_renewed,
    new_prediction,
    promise_for_elsewhere,
)
from scheduler.selectors.figures.start_forecasts import start_promise
from scheduler.selectors.figures.stretches import TELL_STATES, stretches
from scheduler.selectors.figures.training import attempt_that_counts
from scheduler.selectors.jobs import (
    artifacts,
    events,
    jobs_by_state,
    jobs_named_in,
    log_tail,
    may_change,
    sees,
)
from scheduler.selectors.markets.job_market import decisions_on_market, job_market
from scheduler.selectors.policy import current_policy
from scheduler.services.explanations.questions import answered
from scheduler.states import LIVE, DependencyKind, JobState, public_state

EVENTS, CHECKPOINTS, DECISIONS = 200, 50, 10  # the last ones; the API has all events and decisions


@dataclass(frozen=True, slots=True)
class Tab:
    label: str
    template: str
    context: Callable[[HttpRequest, Job, datetime], dict[str, Any]]


def _overview(request: HttpRequest, job: Job, now: datetime) -> dict[str, Any]:
    attempt = attempt_that_counts(list(job.attempts.all()))
    cost = cost_so_far(job, now)
    spent = cost.spent if cost else None
    prediction = new_prediction(job, cost, now)
    happened = list(events(job).filter(type__in=TELL_STATES | CHANGES))
    return {
        "promise": attempt.promised if attempt else job.promised,
        "attempt_counts": attempt is not None,
        "spent_estimated": bool(spent and spent.estimated),
        "prediction": prediction,
        "compared": [(line, getattr(prediction, line.name, None)) for line in comparison(job, spent, now)],
        "first_promise": promise_for_elsewhere(job),
        "renewed": is_renewed(job, happened),
        "at_submission": comparison_with_submission(job, spent, now),
        "start_promise": start_promise(job),
        "may_delete": may_change(cast(User, request.user), job),
        "files": [] if job.state in LIVE else list(artifacts(job)),  # an attempt leaves them at its end
        "order": _order(request, job),
        "stretches": stretches(happened, now),
    }


def _similar(request: HttpRequest, job: Job, now: datetime) -> LikeJobs:
    user: User = request.user  # type: ignore[assignment]
    return similar_jobs(user, facts_of_job(job), now, but=job.pk)


class Earlier(NamedTuple):
    """A job or array that another one comes after; `seen`: by the reader."""

    on: Job | JobArray
    must_succeed: bool
    seen: bool
    state: str

    @property
    def whole(self) -> bool:
        return isinstance(self.on, JobArray)


def _order(request: HttpRequest, job: Job) -> list[Earlier]:
    """The jobs and arrays that it comes after, with their states."""
    user: User = request.user  # type: ignore[assignment]
    after = dependencies_of(job)
    arrays = jobs_by_state(user, [one.on_array_id for one in after if one.on_array_id])
    found = []
    for one in after:
        must_succeed = one.kind == DependencyKind.SUCCEEDED
        if one.on:
            state = public_state(JobState(one.on.state), one.on.stop_for)
            found.append(Earlier(one.on, must_succeed, sees(user, one.on), state))
        elif one.on_array:
            states = arrays.get(one.on_array.pk, {})
            text = ", ".join(f"{number} {state}" for state, number in states.items())
            found.append(Earlier(one.on_array, must_succeed, bool(states), text))
    return found


def _log(request: HttpRequest, job: Job, now: datetime) -> dict[str, Any]:
    search = LogSearch(request.GET)
    shown = {"search": search, "questions": QUESTIONS}
    if search.is_valid() and (question := search.cleaned_data["ask"]):
        user: User = request.user  # type: ignore[assignment]
        answer = answered(job=job, asker=user, question=question, now=now)
        return {**shown, "answer": answer, "asked": past_questions(job), "log": log_tail(job)}
    if search.is_valid() and (wanted := search.cleaned_data["q"]):
        return {**shown, "wanted": wanted, "found": search.lines_of(job)}
    if search.is_valid() and (line := search.cleaned_data["line"]):
        return {**shown, "line": line, "around": search.lines_around(job)}
    return {**shown, "log": log_tail(job)}


def _parameters(request: HttpRequest, job: Job, now: datetime) -> dict[str, Any]:
    user: User = request.user  # type: ignore[assignment]
    return {
        "chosen": job.chosen,
        "evidence": job.evidence,
        "notes": job.notes,
        "similar": _similar(request, job, now),
        "reading": own_reading(user, job),
    }


def _attempts(_: HttpRequest, job: Job, _now: datetime) -> dict[str, Any]:
    causes = kept_causes(job)
    return {
        "attempts": [(attempt, causes.get(attempt.fence)) for attempt in job.attempts.all()],
        "checkpoints": list(of_job(job)[:CHECKPOINTS]),
    }


def _events(request: HttpRequest, job: Job, _now: datetime) -> dict[str, Any]:
    user: User = request.user  # type: ignore[assignment]
    last = list(events(job).order_by("-number")[:EVENTS])
    return {"events": last[::-1], "named_in_events": jobs_named_in(user, (event.reason for event in last))}


def _decisions(_: HttpRequest, job: Job, _now: datetime) -> dict[str, Any]:
    return {"decisions": [explain(row) for row in decisions_of(job)[:DECISIONS]]}


def _market(_: HttpRequest, job: Job, now: datetime) -> dict[str, Any]:
    market = job_market(job, current_policy(), now)
    chart = lanes_chart(market.spans, job.deadline_at, now)
    return {"market": market, "chart": chart, "decisions": decisions_on_market(job)}


def _change(request: HttpRequest, job: Job, _now: datetime) -> dict[str, Any]:
    user: User = request.user  # type: ignore[assignment]
    form = ChangeForm(job=job, user=user) if may_change(user, job) else None
    if not user.is_admin:
        return {"form": form}
    waits = job.state in (JobState.QUEUED, JobState.PAUSED)
    return {"form": form, "hold_form": HoldForm(), "front_form": FrontForm() if waits else None}


def _repeat(request: HttpRequest, job: Job, _now: datetime) -> dict[str, Any]:
    return {"curl": as_curl(job, portal=request.build_absolute_uri("/").rstrip("/"))}


TABS = {
    "overview": Tab("Overview", "jobs/tabs/overview.html", _overview),
    "log": Tab("Log", "jobs/tabs/log.html", _log),
    "parameters": Tab("Parameters", "jobs/tabs/parameters.html", _parameters),
    "attempts": Tab("Attempts", "jobs/tabs/attempts.html", _attempts),
    "decisions": Tab("Decisions", "jobs/tabs/decisions.html", _decisions),
    "market": Tab("Market", "jobs/tabs/market.html", _market),
    "events": Tab("Events", "jobs/tabs/events.html", _events),
    "change": Tab("Change", "jobs/tabs/change.html", _change),
    "repeat": Tab("API call", "jobs/tabs/repeat.html", _repeat),
}
