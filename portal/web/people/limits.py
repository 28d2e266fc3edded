"""Quotas on the page of a team, and limits of people."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.accounts.models import Team, User
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.team_usage import receipt_chart
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import NumberField, WholeNumberField
from portal.web.common.period import present
from portal.web.common.time_fields import HoursField
from scheduler.core.job_terms import MOST_RUN_S
from scheduler.errors import BadParameters
from scheduler.models import PersonLimit
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.analysis.team_usage import team_usage
from scheduler.selectors.cluster.inventory import inventory_models
from scheduler.selectors.quotas import default_limit, limit_of, quota_warnings, quotas_of, used_this_month
from scheduler.services.quotas import (
    MOST_GPUS,
    MOST_HOURS,
    LimitValues,
    QuotaValues,
    put_quota,
    remove_quota,
    set_limit,
)
from scheduler.states import PriorityClass

RECEIPT = timedelta(days=30)
ALL = "all GPU models together"


class QuotaForm(StyledForm):
    prefix_id = "quota"
    gpu_model = forms.CharField(
        max_length=100, required=False, label="GPU model", help_text=f"Empty: {ALL}.",
        widget=forms.TextInput(attrs={"list": "quota-models"}),
    )  # fmt: skip
    guaranteed = WholeNumberField(min_value=0, max_value=MOST_GPUS, label="Guaranteed GPUs")
    borrow_limit = WholeNumberField(
        min_value=0, max_value=MOST_GPUS, required=False, label="May borrow at most",
        help_text="While they are idle; empty: any number.",
    )  # fmt: skip
    lending_limit = WholeNumberField(
        min_value=0, max_value=MOST_GPUS, required=False, label="Lends at most",
        help_text="Of its guaranteed ones, while they are idle; empty: all.",
    )  # fmt: skip


class QuotaModelForm(StyledForm):
    gpu_model = forms.CharField(max_length=100, required=False)


class LimitForm(StyledForm):
    prefix_id = "limit"
    running_jobs = WholeNumberField(
        min_value=0,
        max_value=MOST_GPUS,
        required=False,
        label="Jobs at a time",
        help_text="Empty: any number.",
    )
    gpus = WholeNumberField(
        min_value=0,
        max_value=MOST_GPUS,
        required=False,
        label="GPUs at a time",
        help_text="Empty: any number.",
    )
    gpu_hours_month = NumberField(
        min_value=0, max_value=MOST_HOURS, required=False, label="GPU-hours a month",
        help_text="Empty: any number.",
    )  # fmt: skip
    max_class = forms.TypedChoiceField(
        choices=[(one.value, one.word) for one in PriorityClass], coerce=int, label="Highest priority class"
    )
    max_run_s = HoursField(
        most_s=MOST_RUN_S, required=False, label="Time limit of a job, hours",
        help_text="Empty: any. It counts for jobs that are submitted from now on.",
    )  # fmt: skip

    @classmethod
    def of(cls, limit: PersonLimit | None) -> LimitForm:
        row = limit or PersonLimit()
        return cls(initial={name: getattr(row, name) for name in cls.base_fields})

    @property
    def values(self) -> LimitValues:
        return LimitValues(**self.cleaned_data)


def quota_parts(team: Team, now: datetime) -> dict[str, Any]:
    """The part of a team's page that is about its GPUs."""
    end = present()
    period = Period(end - RECEIPT, end)
    usage = team_usage(team, period, now)
    return {
        "quotas": list(quotas_of(team)),
        "quota_warnings": quota_warnings(team),
        "quota_form": QuotaForm(),
        "gpu_models": inventory_models(),
        "usage": usage,
        "receipt": receipt_chart(usage[0], period.slices),
    }


def set_team_quota(*, team: Team, actor: User, now: datetime, **values: Any) -> None:
    """Set one quota of a team, beside its others."""
    put_quota(team=team, values=QuotaValues(**values), actor=actor, now=now)


def end_team_quota(*, team: Team, actor: User, now: datetime, gpu_model: str) -> None:
    """Let a team have no quota of this model any more."""
    remove_quota(team=team, gpu_model=gpu_model, actor=actor, now=now)


def limit_parts(person: User | None, form: LimitForm | None = None) -> dict[str, Any]:
    """The limits of a person, or (None) of everybody, with a form that sets them."""
    limit = limit_of(person) if person else default_limit()
    used = used_this_month([person.pk], database_now()) if person else {}
    return {
        "limit": limit,
        "limit_form": form or LimitForm.of(limit),
        "hours_used": used.get(person.pk, 0.0) / 3600 if person else None,
    }


def save_limit(request: PageRequest, person: User | None) -> LimitForm | None:
    """Set or remove limits as the form says; return it if it is wrong."""
    given: dict[str, Any] = {"user": person, "actor": request.user, "now": database_now()}
    if "remove" in request.POST:
        set_limit(values=None, **given)
        return None
    form = LimitForm(request.POST)
    if form.is_valid():
        try:
            set_limit(values=form.values, **given)
            return None
        except BadParameters as wrong:
            form.take(wrong.fields)
    return form


@login_required
@require_http_methods(["GET", "POST"])
def default_limits(request: PageRequest) -> HttpResponse:
    """The limits of everybody without limits of their own."""
    refuse_others_than_admins(request)
    form = save_limit(request, None) if request.method == "POST" else None
    if request.method == "POST" and form is None:
        return redirect("limits")
    return render(request, "people/limits.html", limit_parts(None, form), status=400 if form else 200)
