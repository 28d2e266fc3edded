"""Analytics: how long jobs took, what the cluster was used for, and what went wrong."""

from __future__ import annotations

from functools import partial

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.web.analysis.period import RANGES, chosen, present, remembered
from portal.web.charts import distributions, usage
from portal.web.charts.chart import Chart
from scheduler.selectors.analysis import analytics as figures
from scheduler.selectors.analysis.period import Period


@login_required
@require_GET
def analytics(request: PageRequest) -> HttpResponse:
    """All charts over the chosen period; of the reader's own and their teams' jobs."""
    first = partial(figures.first_submission, request.user)
    when = chosen(request.GET.dict(), now=present(), first=first)
    charts = remembered("analytics", request.user, when.period, partial(_charts, request.user, when.period))
    context = {"chosen": when, "ranges": RANGES, "charts": charts}
    return render(request, "analytics/page.html", context, status=400 if when.errors else 200)


def _charts(user: User, period: Period) -> list[Chart]:
    waiting, ended = figures.waiting(user, period), figures.ended(user, period)
    return [
        usage.utilisation_chart(figures.utilisation(user, period), period.slices),
        usage.outcomes_chart(ended.by_state, period.slices),
        distributions.distribution(waiting.jct_s, distributions.JCT),
        distributions.distribution(waiting.wait_s, distributions.WAIT),
        distributions.distribution(waiting.slowdown, distributions.SLOWDOWN),
        usage.failures_chart(figures.failed_attempts(user, period), ended.failures),
        usage.throughput_chart(figures.throughput_by_gpu(user, period)),
    ]
