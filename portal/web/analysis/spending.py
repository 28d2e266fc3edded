"""Use and cost of jobs: by team, by person and by node."""

from __future__ import annotations

from functools import partial

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.period import RANGES, chosen, present, remembered
from scheduler.selectors.analysis.analytics import first_submission
from scheduler.selectors.analysis.spending import visible_spending


@login_required
@require_GET
def spending(request: PageRequest) -> HttpResponse:
    """Show GPU hours and cost over the chosen period.

    They are of the reader's own and their teams' jobs.
    """
    first = partial(first_submission, request.user)
    when = chosen(request.GET.dict(), now=present(), first=first)
    now = database_now()
    summed = partial(visible_spending, request.user, when.period, now)
    found = remembered("spending", request.user, when.period, summed)
    context = {"chosen": when, "ranges": RANGES, "spending": found}
    return render(request, "analytics/spending.html", context, status=400 if when.errors else 200)
