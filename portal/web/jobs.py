"""The list of jobs, and one job as it runs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.requests import PageRequest
from portal.comparison import compare
from portal.public_states import PUBLIC_STATES, in_public_state, may, shown_state
from portal.web.charts.loss import loss_curve
from scheduler.errors import IllegalTransition, NotFound, StaleJob
from scheduler.models import Job
from scheduler.selectors.jobs import artifacts, events, get_job, log_tail, metrics, visible_jobs
from scheduler.services.jobs import cancel_job, pause_job, resume_job
from scheduler.states import TERMINAL, JobState

PAGE = 25
CHART_ROWS = 20_000
VERBS = {"cancel": cancel_job, "pause": pause_job, "resume": resume_job}


def own_job(request: PageRequest, job_id: str) -> Job:
    """Raises Http404, also for jobs of others."""
    try:
        return get_job(request.user, job_id)
    except NotFound as unknown:
        raise Http404 from unknown


@login_required
@require_GET
def job_list(request: PageRequest) -> HttpResponse:
    """Jobs, newest first; a fragment of it for htmx, which asks again while the page is open."""
    rows = visible_jobs(request.user).order_by("-pk")
    state, after = request.GET.get("state", ""), request.GET.get("after", "")
    if state in PUBLIC_STATES:
        rows = in_public_state(rows, state)
    found = list(rows.filter(pk__lt=after)[: PAGE + 1] if after else rows[: PAGE + 1])
    context = {
        "rows": [{"job": job, "state": shown_state(job), "percent": _percent(job)} for job in found[:PAGE]],
        "states": PUBLIC_STATES,
        "state": state,
        "after": after,
        "next": found[PAGE - 1].pk if len(found) > PAGE else "",
    }
    live = request.headers.get("HX-Request") == "true"
    return render(request, "jobs/rows.html" if live else "jobs/list.html", context)


def _percent(job: Job) -> int | None:
    if job.state == JobState.SUCCEEDED:
        return 100
    return min(100, round(100 * job.step / job.total_steps)) if job.total_steps else None


@login_required
@require_GET
def job_detail(request: PageRequest, job_id: str) -> HttpResponse:
    return render(request, "jobs/detail.html", _detail(own_job(request, job_id)))


@login_required
@require_GET
def job_live(request: PageRequest, job_id: str) -> HttpResponse:
    """The part of the page that changes while the job lives."""
    return render(request, "jobs/live.html", _detail(own_job(request, job_id)))


def _detail(job: Job) -> dict[str, Any]:
    attempts = list(job.attempts.all())
    last = attempts[-1] if attempts else None
    promise = (last.option if last else job.promise) or {}
    return {
        "job": job,
        "state": shown_state(job),
        "final": job.state in TERMINAL,
        "percent": _percent(job),
        "may": may(job),
        # While it runs the last step's rate, afterwards that of the whole attempt.
        "rate": last.measured.get("tokens_per_s") if last and last.ended_at else job.tokens_per_second,
        "promise": promise,
        "compared": compare(promise, last),
        "attempts": attempts,
        "events": list(events(job)),
        "files": list(artifacts(job)),
        "log": log_tail(job),
    }


@login_required
@require_GET
def job_chart(request: PageRequest, job_id: str) -> JsonResponse:
    """The loss curve as a figure for static/js/charts.js; `final` ends its asking."""
    job = own_job(request, job_id)
    figure = loss_curve(list(metrics(job)[:CHART_ROWS]))
    return JsonResponse({**figure, "final": job.state in TERMINAL})


@login_required
@require_POST
def job_verb(request: PageRequest, job_id: str, verb: str) -> HttpResponse:
    """Cancel, pause or resume, then show the job again."""
    job = own_job(request, job_id)
    if verb not in VERBS:
        raise Http404
    try:
        VERBS[verb](job=job, actor=request.user, now=timezone.now())
    except (IllegalTransition, StaleJob) as refused:
        messages.warning(request, str(refused))
    return redirect(job)
