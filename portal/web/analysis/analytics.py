"""The analytics page.

It shows how long jobs took, what the cluster was used for, and what went wrong.
"""

from __future__ import annotations

from functools import partial

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts import distributions, usage
from portal.web.charts.chart import Chart
from portal.web.charts.read_values import read_values_chart
from portal.web.common.period import RANGES, chosen, present, remembered
from scheduler.selectors.analysis.analytics import (
    ended,
    failed_attempts,
    first_submission,
    throughput_by_gpu,
    utilisation,
    waiting,
)
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.analysis.readings import read_value_counts


@login_required
@require_GET
def analytics(request: PageRequest) -> HttpResponse:
    """All charts over the chosen period, of the reader's own and their teams' jobs."""
    first = partial(first_submission, request.user)
    when = chosen(request.GET.dict(), now=present(), first=first)
    charts = remembered("analytics", request.user, when.period, partial(_charts, request.user, when.period))
    context = {"chosen": when, "ranges": RANGES, "charts": charts}
    return render(request, "analytics/page.html", context, status=400 if when.errors else 200)


def _charts(user: User, period: Period) -> list[Chart]:
    waits, ends = waiting(user, period), ended(user, period)
    charts = [
        usage.utilisation_chart(utilisation(user, period, database_now()), period.slices),
        usage.outcomes_chart(ends.by_state, period.slices),
        distributions.distribution(waits.jct_s, distributions.JCT),
        distributions.distribution(waits.wait_s, distributions.WAIT),
        distributions.distribution(waits.slowdown, distributions.SLOWDOWN),
        usage.failures_chart(failed_attempts(user, period), ends.failures),
        usage.throughput_chart(throughput_by_gpu(user, period)),
    ]
    return [*charts, read_values_chart(read_value_counts())] if user.is_admin else charts
