"""The start page: my jobs now, the cluster's load, and what changed while I was away."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from knowledge.selectors import drift_alarm
from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.accounts.visits import away_since
from portal.clock import database_now
from portal.web.common.partials import fragment, is_fragment
from portal.web.jobs.rows import rows_of
from scheduler.models import Job
from scheduler.selectors.analysis.activity import has_submitted, job_news, node_news, unfinished_jobs
from scheduler.selectors.analysis.overview import waiting_jobs
from scheduler.selectors.cluster.capacity import load
from scheduler.selectors.jobs import with_costs
from scheduler.states import JobState

SHOWN_JOBS, SHOWN_NEWS = 8, 6


@login_required
@require_GET
def home(request: PageRequest) -> HttpResponse:
    if is_fragment(request):
        return fragment(request, "home/now.html", _now(request.user))
    since = away_since(user=request.user, session=request.session, now=database_now())
    context = {**_now(request.user), "since": since, "drift": drift_alarm() if request.user.is_admin else ""}
    if since:
        context |= {
            "job_news": job_news(request.user, since)[:SHOWN_NEWS],
            "node_news": node_news(since)[:SHOWN_NEWS],
        }
    return render(request, "home/page.html", context)


def _now(user: User) -> dict[str, Any]:
    found = list(with_costs(unfinished_jobs(user))[: SHOWN_JOBS + 1])
    first = not found and not has_submitted(user)
    return {
        "rows": rows_of(found[:SHOWN_JOBS]),
        "more": len(found) > SHOWN_JOBS,
        "first": first,
        "next_finish": _next_finish(found),
        "load": load(),
        "waiting": waiting_jobs(),
    }


def _next_finish(jobs: list[Job]) -> Job | None:
    """The running job with the least time left."""
    running = [job for job in jobs if job.state == JobState.RUNNING and job.eta_s is not None]
    return min(running, key=lambda job: job.eta_s or 0.0, default=None)
