"""The list of jobs."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.partials import fragment, is_fragment
from portal.web.jobs.filters import JobFilters
from portal.web.jobs.rows import rows_of
from scheduler.selectors.jobs import for_lists, visible_jobs

PAGE = 25


@login_required
@require_GET
def job_list(request: PageRequest) -> HttpResponse:
    """List jobs, newest first.

    It is a fragment for htmx, which asks again while the page is open.
    """
    filters = JobFilters(request.GET, user=request.user)
    if not filters.is_valid():
        return render(request, "jobs/list.html", {"filters": filters}, status=400)
    found = list(for_lists(filters.apply(visible_jobs(request.user)))[: PAGE + 1])
    context = {
        "filters": filters,
        "rows": rows_of(found[:PAGE], database_now()),
        "state": filters.cleaned_data["state"],
        "filtered": filters.in_use,
        "next": found[PAGE - 1].pk if len(found) > PAGE else "",
    }
    if is_fragment(request):
        return fragment(request, "jobs/rows.html", context)
    return render(request, "jobs/list.html", context)
