"""The list of jobs."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from knowledge.core.domain.wording import counted
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.partials import fragment, is_fragment
from portal.web.common.refusals import or_404, refusals_shown
from portal.web.jobs.filters import JobFilters
from portal.web.jobs.rows import rows_of
from scheduler.selectors.jobs import (
    array_named,
    array_values,
    for_lists,
    get_array,
    jobs_by_state,
    jobs_named_in,
    visible_jobs,
)
from scheduler.services.jobs.arrays import cancel_array
from scheduler.services.jobs.cancellations import Cancelled
from scheduler.states import TERMINAL

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
    array = array_named(request.user, filters.cleaned_data["q"])
    states = jobs_by_state(request.user, [array.pk]).get(array.pk, {}) if array else {}
    found = list(for_lists(filters.apply(visible_jobs(request.user)))[: PAGE + 1])
    differs = array_values(array, [job.pk for job in found]) if array else {}
    context = {
        "filters": filters,
        "rows": rows_of(found[:PAGE], database_now(), differs),
        "named": jobs_named_in(request.user, (job.wait_text for job in found)),
        "state": filters.cleaned_data["state"],
        "filtered": filters.in_use,
        "array": array,
        "array_jobs": states,
        "array_open": any(state not in TERMINAL for state in states),
        "next": found[PAGE - 1].pk if len(found) > PAGE else "",
    }
    if is_fragment(request):
        return fragment(request, "jobs/rows.html", context)
    return render(request, "jobs/list.html", context)


@login_required
@require_POST
def array_cancel(request: PageRequest, array_id: str) -> HttpResponse:
    """Cancel all jobs of an array that have not ended, and show them again."""
    array = or_404(get_array, request.user, array_id)
    with refusals_shown(request):
        done = cancel_array(array=array, actor=request.user, now=database_now())
        messages.info(request, _cancelled(done))
    return redirect(array)


def _cancelled(done: Cancelled) -> str:
    said = f"Cancelled: {counted(done.waiting, 'job')}."
    return f"{said} Being stopped: {counted(done.stopping, 'job')}." if done.stopping else said
