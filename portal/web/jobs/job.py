"""One job as it runs: its page, the parts that change, its charts and its verbs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.step_metrics import HEADINGS, step_chart
from portal.web.common.partials import fragment
from portal.web.common.refusals import or_404, refusals_shown
from portal.web.jobs.changes.forms import ChangeForm, FrontForm, HoldForm
from portal.web.jobs.tabs import TABS
from scheduler.errors import BadParameters
from scheduler.models import Job
from scheduler.selectors.analysis.failures import explained
from scheduler.selectors.cluster.job_silence import job_silence
from scheduler.selectors.cluster.preemptions import preempted
from scheduler.selectors.figures.cost import cost_so_far, expected_cost
from scheduler.selectors.figures.job import job_figures
from scheduler.selectors.figures.promise import later_than_promised, promise_to_compare
from scheduler.selectors.figures.start_forecasts import newest_forecast
from scheduler.selectors.figures.training import attempt_that_counts
from scheduler.selectors.jobs import cancellation, delivers, get_job, jobs_named_in, metrics
from scheduler.selectors.public_states import WHILE_PAUSED, may
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.kept_checkpoints import delete_outputs
from scheduler.services.jobs.priorities import hold_job, move_back, move_to_front, release_job
from scheduler.services.jobs.verbs import CANCEL_ASKED, CANCELLED, cancel_job, pause_job, resume_job
from scheduler.states import LIVE, TERMINAL
from trainer.step_metrics import STEP_CHARTS

CHART_ROWS = 20_000
JobForm = Callable[[PageRequest, Job], HttpResponse]
VERBS: dict[str, Callable[..., object]] = {
    "cancel": cancel_job,
    "pause": pause_job,
    "resume": resume_job,
    "delete-files": delete_outputs,
}


def own_job(request: PageRequest, job_id: str) -> Job:
    """Raises Http404, also for jobs of others."""
    return or_404(get_job, request.user, job_id)


@login_required
@require_GET
def job_detail(request: PageRequest, job_id: str) -> HttpResponse:
    job = own_job(request, job_id)
    tab = request.GET.get("tab", "overview")
    if tab not in TABS:
        raise Http404
    now = database_now()
    return render(request, "jobs/detail.html", _page(request, job, tab, now))


def _page(request: PageRequest, job: Job, tab: str, now: datetime) -> dict[str, Any]:
    parts = {"tabs": TABS, "charts": HEADINGS}
    return {**_live(request, job, now), **_tab(request, job, tab, now), **parts}


@login_required
@require_GET
def job_live(request: PageRequest, job_id: str) -> HttpResponse:
    """State, progress and verbs: what changes all the time while the job lives."""
    return fragment(request, "jobs/live.html", _live(request, own_job(request, job_id), database_now()))


@login_required
@require_GET
def job_tab(request: PageRequest, job_id: str, tab: str) -> HttpResponse:
    """One tab, again."""
    if tab not in TABS:
        raise Http404
    return fragment(request, "jobs/tab.html", _tab(request, own_job(request, job_id), tab, database_now()))


def _live(request: PageRequest, job: Job, now: datetime) -> dict[str, Any]:
    figures, cost = job_figures(job, now), cost_so_far(job, now)
    cancelled = cancellation(job)
    because = cancelled.reason if cancelled and cancelled.reason not in (CANCELLED, CANCEL_ASKED) else ""
    return {
        "job": job,
        "figures": figures,
        "state": figures.state,
        "percent": figures.percent,
        "silence": job_silence(job, now),
        "late": later_than_promised(job, figures.ending, now),
        "promised": promise_to_compare(job),
        "spent": cost.spent.amount if cost else None,
        "expected_cost": expected_cost(job, cost, figures.ending),
        "attempt": attempt_that_counts(list(job.attempts.all())),
        "final": job.state in TERMINAL,
        "explained": explained(job),
        "may": may(job),
        "delivers": job.state in LIVE and delivers(job),
        "while_paused": WHILE_PAUSED if figures.state == "paused" else "",
        "preempted": preempted(job, request.user),
        "starts": newest_forecast(job, now),
        "cancelled": cancelled,
        "cancelled_because": because,
        "named": jobs_named_in(request.user, [job.wait_text, because]),
    }


def _tab(request: PageRequest, job: Job, name: str, now: datetime) -> dict[str, Any]:
    tab = TABS[name]
    shown = {"job": job, "tab": name, "tab_template": tab.template, "final": job.state in TERMINAL}
    return {**shown, **tab.context(request, job, now)}


@login_required
@require_GET
def job_chart(request: PageRequest, job_id: str, chart: str) -> JsonResponse:
    """A figure for static/js/charts.js; `final` ends its asking."""
    job = own_job(request, job_id)
    if chart not in STEP_CHARTS:
        raise Http404
    latest = list(metrics(job).reverse()[:CHART_ROWS])
    figure = step_chart(chart, latest[::-1])
    return JsonResponse({**figure, "final": job.state in TERMINAL})


@login_required
@require_POST
def job_verb(request: PageRequest, job_id: str, verb: str) -> HttpResponse:
    """Cancel, pause, resume, change, hold or move it, then show the job again."""
    job = own_job(request, job_id)
    if verb in FORMS:
        return FORMS[verb](request, job)
    if verb not in VERBS:
        raise Http404
    with refusals_shown(request):
        VERBS[verb](job=job, actor=request.user, now=database_now())
    return redirect(job)


def _changed(request: PageRequest, job: Job) -> HttpResponse:
    """Change the job in place, and show it again."""
    form, now = ChangeForm(request.POST, job=job, user=request.user), database_now()
    if form.is_valid():
        try:
            with refusals_shown(request, but=BadParameters):
                change_job(job=job, actor=request.user, now=now, **form.values)
            return redirect(job)
        except BadParameters as wrong:
            form.take(wrong.fields)
    shown = {**_page(request, job, "change", now), "form": form}
    return render(request, "jobs/detail.html", shown, status=400)


def _noted(form_of: type[HoldForm], place: str, act: Callable[..., Job]) -> JobForm:
    """An administrator's action on a job, with a note; the job is shown again then."""

    def done(request: PageRequest, job: Job) -> HttpResponse:
        form, now = form_of(request.POST), database_now()
        if not form.is_valid():
            shown = {**_page(request, job, "change", now), place: form}
            return render(request, "jobs/detail.html", shown, status=400)
        with refusals_shown(request):
            act(job=job, actor=request.user, now=now, note=form.cleaned_data["note"])
        return redirect(job)

    return done


def _undone(act: Callable[..., Job]) -> JobForm:
    def done(request: PageRequest, job: Job) -> HttpResponse:
        with refusals_shown(request):
            act(job=job, actor=request.user, now=database_now())
        return redirect(job)

    return done


FORMS: dict[str, JobForm] = {
    "change": _changed,
    "hold": _noted(HoldForm, "hold_form", hold_job),
    "release": _undone(release_job),
    "front": _noted(FrontForm, "front_form", move_to_front),
    "back": _undone(move_back),
}
