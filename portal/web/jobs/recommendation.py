"""The recommendation beside the form of a new job, as the form is now."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from knowledge.advice_json import step_s
from knowledge.core.domain.types import Advice, Choice, Option, Source
from knowledge.core.explain.feasibility import Check
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.recommender import Recommender
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.pareto import pick, price_of, tradeoff
from portal.web.common.param_fields import PREFIX, form_value
from portal.web.jobs.forms import SubmitForm
from portal.web.templatetags.portal_format import duration, number, words
from scheduler.errors import BadParameters
from scheduler.services.jobs.advice import check, current_recommender, recommend
from trainer.recipes import RECIPES

PLACE = ("gpu_model", "number_gpus", "number_nodes")
SHOWN_OPTIONS = 12


@dataclass(frozen=True, slots=True)
class Line:
    """A parameter with its value and reason; `fill` is what a button writes into the form, as JSON."""

    name: str
    choice: Choice
    fill: str = ""


@login_required
@require_GET
def advice(request: PageRequest) -> HttpResponse:
    """The recommendation for the form as it is now: a fragment, asked for on every change."""
    form = SubmitForm(request.GET, user=request.user)
    form.is_valid()
    context: dict[str, Any] = {}
    if form.cleaned_data.get("model") and form.cleaned_data.get("training_file"):
        try:
            context = _context(form)
        except BadParameters as wrong:
            context = {"problems": {_label(form, name): message for name, message in wrong.fields.items()}}
    context["wrong"] = {
        form[name].label: errors for name, errors in form.errors.items() if name in form.fields
    }
    return render(request, "jobs/advice.html", context)


def _label(form: SubmitForm, name: str) -> str:
    return str(form[name].label) if name in form.fields else words(name.removeprefix("params."))


def _context(form: SubmitForm) -> dict[str, Any]:
    recommender, now = current_recommender(), database_now()
    found = _advice(recommender, form, form.params, now)
    pinned = any(name in form.params for name in PLACE)
    options = found.options
    if pinned:
        free = {name: value for name, value in form.params.items() if name not in PLACE}
        anywhere = _advice(recommender, form, free, now).options
        elsewhere = [o for o in anywhere if not found.best or o.key != found.best.key]
        options = (*found.options[:1], *elsewhere)
    options = tuple(option for option in options if option.source is not Source.DEFAULT)
    priced = any(option.cost.value for option in options)
    shown = options[:SHOWN_OPTIONS]
    checked = _checked(recommender, form, found.best)
    return {
        "check": checked,
        "remedy": _remedy(checked) if checked else "",
        "advice": found,
        "best": found.best,
        "step_s": step_s(found.best) if found.best else None,
        "priced": priced,
        "pinned": pinned,
        "unpin": json.dumps({PREFIX + name: "" for name in PLACE}),
        "options": [(o, price_of(o, priced=priced), json.dumps(pick(o))) for o in shown],
        "tradeoff": tradeoff(options) if len(options) > 1 else None,
        "lines": [_line(name, choice) for name, choice in found.chosen.items()],
        "warnings": _limits(form.cleaned_data, found.best, now),
    }


def _advice(recommender: Recommender, form: SubmitForm, params: dict[str, Any], now: datetime) -> Advice:
    values = form.cleaned_data
    return recommend(
        recommender=recommender,
        model=values["model"],
        training_file=values["training_file"],
        validation_file=values.get("validation_file"),
        params=params,
        goal=values.get("goal") or "balanced",
        deadline_at=values.get("deadline_at"),
        budget=values.get("budget"),
        now=now,
    )


def _checked(recommender: Recommender, form: SubmitForm, best: Option | None) -> Check | None:
    """Which smallest change makes what the person fixed fit; None where it fits or nothing was fixed."""
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
        )
    except BadParameters:
        return None  # of a model without a shape nothing can be said


def _remedy(checked: Check) -> str:
    """Values that a button writes into the form to make it fit, as JSON."""
    changes = {
        PREFIX + name: "" if new is None else form_value(new) for name, (_, new) in checked.changes.items()
    }
    return json.dumps(changes) if changes else ""


def _line(name: str, choice: Choice) -> Line:
    if name not in RECIPES["sft"].params or choice.value is None:
        return Line(name, choice)
    value = "" if choice.by == "user" else form_value(choice.value)
    return Line(name, choice, json.dumps({PREFIX + name: value}))


def _limits(values: dict[str, Any], best: Option | None, now: datetime) -> list[str]:
    """The deadline and the budget against the forecast."""
    told = []
    deadline, budget = values.get("deadline_at"), values.get("budget")
    if best and deadline and (left := (deadline - now).total_seconds()) < _high(best.duration_s):
        longest = duration(_high(best.duration_s))
        told.append(f"The deadline leaves {duration(max(0.0, left))}; it may take {longest} and waits first.")
    if best and budget is not None and budget < _high(best.cost):
        told.append(f"The budget is {number(budget)}; the job may cost {number(_high(best.cost))}.")
    return told


def _high(interval: Any) -> float:
    return float(interval.value if interval.high is None else interval.high)
