"""The start page.

It shows the reader's current jobs, the cluster's load, and changes since the last visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from knowledge.selectors import drift_alarm
from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.accounts.visits import last_visit
from portal.clock import database_now
from portal.disk import disk
from portal.web.common.partials import fragment, is_fragment
from portal.web.jobs.rows import JobRow, rows_of
from scheduler.selectors.analysis.activity import has_submitted, job_news, node_news, unfinished_jobs
from scheduler.selectors.analysis.overview import waiting_jobs
from scheduler.selectors.cluster.availability import availability
from scheduler.selectors.cluster.capacity import load
from scheduler.selectors.jobs import for_lists, jobs_named_in

SHOWN_JOBS, SHOWN_NEWS = 8, 6


@login_required
@require_GET
def home(request: PageRequest) -> HttpResponse:
    if is_fragment(request):
        return fragment(request, "home/now.html", _now(request.user))
    away = last_visit(user=request.user, session=request.session, now=database_now())
    context = {**_now(request.user), "since": away and away.since}
    if request.user.is_admin:
        now = disk()
        # Of a full one everybody is told, on every page.
        context |= {"drift": drift_alarm(), "scarce_disk": "" if now.is_full else now.trouble}
    if away:
        context |= {
            "job_news": job_news(request.user, after=away.position, limit=SHOWN_NEWS),
            "node_news": node_news(after=away.position, limit=SHOWN_NEWS),
        }
    return render(request, "home/page.html", context)


def _now(user: User) -> dict[str, Any]:
    now = database_now()
    rows = rows_of(for_lists(unfinished_jobs(user))[: SHOWN_JOBS + 1], now)
    return {
        "availability": availability(now) if user.is_admin else None,
        "rows": rows[:SHOWN_JOBS],
        "more": len(rows) > SHOWN_JOBS,
        "first": not rows and not has_submitted(user),
        "next_finish": _next_finish(rows),
        "load": load(now),
        "waiting": waiting_jobs(),
        "named": jobs_named_in(user, (row.job.wait_text for row in rows)),
    }


def _next_finish(rows: Sequence[JobRow]) -> JobRow | None:
    """The job with the least time left."""
    known = [(row.figures.time_left_s, row) for row in rows if row.figures.time_left_s is not None]
    return min(known, key=lambda one: one[0], default=(None, None))[1]
