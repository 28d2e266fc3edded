"""The recommendation beside the form of a new job, as the form is now."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from knowledge.core.domain.types import Choice, Goal, Option, Recommendation, Source
from knowledge.core.explain.feasibility import Check
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.recommendations.recommendation_json import step_s
from knowledge.recommendations.recommender import Recommender
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.pareto import pick, price_of, tradeoff
from portal.web.common.param_fields import PREFIX, form_value
from portal.web.jobs.forms import SubmitForm
from portal.web.templatetags.portal_format import duration, money
from scheduler.core.job_terms import wants_spot
from scheduler.core.market.plans import PORTAL
from scheduler.core.market.pool import ON_DEMAND
from scheduler.core.placement.levels import worth_of_closeness
from scheduler.core.policies.spot import SPOT
from scheduler.core.types import Topology
from scheduler.errors import BadParameters
from scheduler.selectors.analysis.similar_jobs import LikeJobs, facts_of, similar_jobs
from scheduler.selectors.markets.plans import plans_for
from scheduler.selectors.markets.quotes import has_markets
from scheduler.selectors.policy import current_policy
from scheduler.services.jobs.recommend import check, clean_request, current_recommender, recommend
from trainer.recipes import PARAMS

PLACE = ("gpu_model", "number_gpus", "number_nodes")
SHOWN_OPTIONS = 12
# By plan, what its button writes into the form.
FILLS = {
    ON_DEMAND: json.dumps({"spot": "no", "goal": Goal.DEADLINE.value}),
    PORTAL: json.dumps({"spot": "yes", "goal": Goal.DEADLINE.value}),
}
OTHER_POLICY = (
    "The policy in force, %s, treats spot nodes like any other; the plans hold under the policy spot."
)


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """A parameter with its value and reason.

    `fill` is what a button writes into the form, as JSON.
    """

    name: str
    choice: Choice
    fill: str = ""


@login_required
@require_GET
def show(request: PageRequest) -> HttpResponse:
    """Show the recommendation for the form as it is now.

    It is a fragment, asked for on every change.
    """
    form = SubmitForm(request.GET, user=request.user)
    form.is_valid()
    context = _answer(form)
    needed = form.needed if form.needed in form.errors else None
    refused = form.refused
    missing = needed and not form[needed].value()  # what was entered but is wrong is left out
    left_out = [f.label for f in form if f.auto_id in refused and not (missing and f.name == needed)]
    context |= {"form": form, "left_out": left_out, "needed": form[needed].label if needed else ""}
    context["verb"] = "enter" if missing else "correct"
    return render(request, "jobs/recommendation/page.html", context)


@login_required
@require_GET
def plans(request: PageRequest) -> HttpResponse:
    """Show what the job of the form would cost on demand and on spot nodes.

    It is a fragment of its own: it plays windows of a market, for which nobody shall wait.
    """
    form = SubmitForm(request.GET, user=request.user)
    form.is_valid()
    found, values = None, form.cleaned_data
    if values.get("model") and values.get("training_file") and values.get("deadline_at"):
        with suppress(BadParameters):  # the recommendation says so
            now = database_now()
            options = _recommendation(current_recommender(spot=True), form, form.params, now).options
            found = plans_for(
                options, deadline_at=values["deadline_at"], budget=values.get("budget"), now=now
            )
    policy = current_policy()
    context = {
        "found": found,
        "fills": FILLS,
        "policy_note": "" if policy == SPOT.name else OTHER_POLICY % policy,
    }
    return render(request, "jobs/recommendation/plans.html", context)


def _answer(form: SubmitForm) -> dict[str, Any]:
    """Answer without the values that are refused.

    The form tells those at their fields.
    """
    for _ in form.fields:  # each refusal takes at least one field out
        values = form.cleaned_data
        try:
            if values.get("model") and values.get("training_file"):
                return _context(form)
            if values.get("model"):
                clean_request(model=values["model"], params=form.params, recipe=form.recipe)
            return {}
        except BadParameters as wrong:
            form.take(wrong.fields)
    return {}


def _context(form: SubmitForm) -> dict[str, Any]:
    now, recommender = database_now(), current_recommender(spot=wants_spot(form.cleaned_data))
    found = _recommendation(recommender, form, form.params, now)
    pinned = any(name in form.params for name in PLACE)
    options = found.options
    if pinned:
        free = {name: value for name, value in form.params.items() if name not in PLACE}
        anywhere = _recommendation(recommender, form, free, now).options
        elsewhere = [o for o in anywhere if not found.best or o.key != found.best.key]
        options = (*found.options[:1], *elsewhere)
    options = tuple(option for option in options if option.source is not Source.DEFAULT)
    priced = any(option.cost.value for option in options)
    shown = options[:SHOWN_OPTIONS]
    checked = _checked(recommender, form, found.best)
    way, level = (form.cleaned_data.get(name) for name in ("topology", "topology_level"))
    return {
        "closeness": worth_of_closeness(Topology(way or Topology.AUTOMATIC), level, found.best)
        if found.best
        else "",
        "check": checked,
        "remedy": _remedy(checked) if checked else "",
        "recommendation": found,
        "best": found.best,
        "step_s": step_s(found.best) if found.best else None,
        "priced": priced,
        "pinned": pinned,
        "unpin": json.dumps({PREFIX + name: "" for name in PLACE}),
        "options": [(o, price_of(o, priced=priced), json.dumps(pick(o))) for o in shown],
        "tradeoff": tradeoff(options) if len(options) > 1 else None,
        "lines": [
            _line(name, choice)
            for name, choice in found.chosen.items()
            if found.best or choice.value is not None  # else settled when a node is free to run it
        ],
        # A value that is pinned to a place is compared with other places instead.
        "similar": None if pinned else _similar(form, found, now),
        "warnings": _limits(form.cleaned_data, found.best, now),
        "ask_plans": bool(found.options and form.cleaned_data.get("deadline_at")) and has_markets(),
    }


def _similar(form: SubmitForm, found: Recommendation, now: datetime) -> LikeJobs:
    values, best = form.cleaned_data, found.best
    facts = facts_of(
        model=values["model"],
        dataset=values["training_file"].filename,
        rows=values["training_file"].rows,
        params={name: choice.value for name, choice in found.chosen.items()} | form.params,
        option=best.as_json() if best else None,
    )
    predicted_s = best.duration_s.value if best else None
    return similar_jobs(form.user, facts, now, predicted_s=predicted_s)


def _recommendation(
    recommender: Recommender, form: SubmitForm, params: dict[str, Any], now: datetime
) -> Recommendation:
    values = form.cleaned_data
    return recommend(
        recommender=recommender,
        model=values["model"],
        training_file=values["training_file"],
        validation_file=values.get("validation_file"),
        params=params,
        recipe=form.recipe,
        goal=_goal(form),
        deadline_at=values.get("deadline_at"),
        budget=values.get("budget"),
        now=now,
    )


def _goal(form: SubmitForm) -> str:
    """The chosen goal; balanced as long as it lacks the limit that it needs."""
    missing = form.needed and form.cleaned_data.get(form.needed) is None
    return Goal.BALANCED if missing else form.cleaned_data.get("goal") or Goal.BALANCED


def _checked(recommender: Recommender, form: SubmitForm, best: Option | None) -> Check | None:
    """Return the smallest change that makes the fixed values fit.

    None where they fit or nothing was fixed.
    """
    if not form.params or (best and (best.source is Source.DEFAULT or best.p_valid >= MIN_P_VALID)):
        return None
    values = form.cleaned_data
    try:
        return check(
            recommender=recommender,
            model=values["model"],
            training_file=values["training_file"],
            validation_file=values.get("validation_file"),
            params=form.params,
            recipe=form.recipe,
        )
    except BadParameters:
        return None  # of a model without a shape nothing can be said


def _remedy(checked: Check) -> str:
    """Values that a button writes into the form to make it fit, as JSON."""
    changes = {
        PREFIX + name: "" if new is None else form_value(new) for name, (_, new) in checked.changes.items()
    }
    return json.dumps(changes) if changes else ""


def _line(name: str, choice: Choice) -> ParameterLine:
    if name not in PARAMS or choice.value is None:
        return ParameterLine(name, choice)
    value = "" if choice.by == "user" else form_value(choice.value)
    return ParameterLine(name, choice, json.dumps({PREFIX + name: value}))


def _limits(values: dict[str, Any], best: Option | None, now: datetime) -> list[str]:
    """The deadline and the budget against the prediction."""
    lines = []
    deadline, budget = values.get("deadline_at"), values.get("budget")
    if best and deadline and (left := (deadline - now).total_seconds()) < _high(best.duration_s):
        longest = duration(_high(best.duration_s))
        lines.append(
            f"The deadline is in {duration(max(0.0, left))}; the job may take {longest} once it has started."
        )
    if best and budget is not None and budget < _high(best.cost):
        lines.append(f"The budget is {money(budget)}; the job may cost {money(_high(best.cost))}.")
    return lines


def _high(interval: Any) -> float:
    return float(interval.value if interval.high is None else interval.high)
