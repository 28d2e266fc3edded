"""One job as it runs: its page, the parts that change, its charts and its verbs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.loss import loss_curve
from portal.web.charts.throughput import throughput_curve
from portal.web.common.partials import fragment
from portal.web.jobs.rows import percent
from portal.web.jobs.tabs import TABS
from scheduler.errors import IllegalTransition, NotFound, StaleJob
from scheduler.models import Job
from scheduler.selectors.jobs import get_job, metrics
from scheduler.selectors.public_states import may, shown_state
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job
from scheduler.states import TERMINAL

CHART_ROWS = 20_000
VERBS = {"cancel": cancel_job, "pause": pause_job, "resume": resume_job}
CHARTS = {"loss": loss_curve, "throughput": throughput_curve}


def own_job(request: PageRequest, job_id: str) -> Job:
    """Raises Http404, also for jobs of others."""
    try:
        return get_job(request.user, job_id)
    except NotFound as unknown:
        raise Http404 from unknown


@login_required
@require_GET
def job_detail(request: PageRequest, job_id: str) -> HttpResponse:
    job = own_job(request, job_id)
    tab = request.GET.get("tab", "overview")
    if tab not in TABS:
        raise Http404
    return render(request, "jobs/detail.html", {**_live(job), **_tab(request, job, tab), "tabs": TABS})


@login_required
@require_GET
def job_live(request: PageRequest, job_id: str) -> HttpResponse:
    """State, progress and verbs: what changes all the time while the job lives."""
    return fragment(request, "jobs/live.html", _live(own_job(request, job_id)))


@login_required
@require_GET
def job_tab(request: PageRequest, job_id: str, tab: str) -> HttpResponse:
    """One tab, again."""
    if tab not in TABS:
        raise Http404
    return fragment(request, "jobs/tab.html", _tab(request, own_job(request, job_id), tab))


def _live(job: Job) -> dict[str, Any]:
    attempts = list(job.attempts.all())
    last = attempts[-1] if attempts else None
    return {
        "job": job,
        "state": shown_state(job),
        "attempt": last,
        "final": job.state in TERMINAL,
        "percent": percent(job),
        "may": may(job),
        # While it runs the last step's rate, afterwards that of the whole attempt.
        "rate": last.figures.tokens_per_s if last and last.ended_at else job.tokens_per_second,
    }


def _tab(request: PageRequest, job: Job, name: str) -> dict[str, Any]:
    tab = TABS[name]
    shown = {"job": job, "tab": name, "tab_template": tab.template, "final": job.state in TERMINAL}
    return {**shown, **tab.context(request, job)}


@login_required
@require_GET
def job_chart(request: PageRequest, job_id: str, chart: str) -> JsonResponse:
    """A figure for static/js/charts.js; `final` ends its asking."""
    job = own_job(request, job_id)
    if chart not in CHARTS:
        raise Http404
    figure = CHARTS[chart](list(metrics(job)[:CHART_ROWS]))
    return JsonResponse({**figure, "final": job.state in TERMINAL})


@login_required
@require_POST
def job_verb(request: PageRequest, job_id: str, verb: str) -> HttpResponse:
    """Cancel, pause or resume, then show the job again."""
    job = own_job(request, job_id)
    if verb not in VERBS:
        raise Http404
    try:
        VERBS[verb](job=job, actor=request.user, now=database_now())
    except (IllegalTransition, StaleJob) as refused:
        messages.warning(request, str(refused))
    return redirect(job)
