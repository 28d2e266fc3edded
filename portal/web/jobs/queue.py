"""The queue: waiting jobs in their places, and GPUs in past, present and future."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.chart import Chart
from portal.web.charts.gpu_timeline import AHEAD, lanes_chart
from portal.web.common.partials import fragment, is_fragment
from scheduler.models import Node
from scheduler.selectors.cluster.availability import availability
from scheduler.selectors.cluster.gpu_lanes import lanes, nodes_with_gpus
from scheduler.selectors.cluster.preemptions import reservations
from scheduler.selectors.cluster.queue import waiting_count, waiting_places
from scheduler.selectors.cluster.stops import recent_levels, recent_stops
from scheduler.selectors.jobs import jobs_named_in
from scheduler.selectors.policy import live_policy

PAGE = 25
NODES = 8
WINDOW = timedelta(hours=6)
A_DAY = timedelta(days=1)


@login_required
@require_GET
def queue(request: PageRequest) -> HttpResponse:
    """The waiting jobs with the lanes.

    For htmx the waiting jobs alone, the lanes of the nodes on a page, or what the last day brought.
    """
    if is_fragment(request) and request.GET.get("last"):
        since = database_now() - A_DAY
        return fragment(
            request, "queue/last_day.html", {"stops": recent_stops(since), "levels": recent_levels(since)}
        )
    nodes = Paginator(nodes_with_gpus(), NODES).get_page(request.GET.get("nodes"))
    if is_fragment(request) and request.GET.get("lanes"):
        return fragment(request, "components/figure.html", {"chart": _lanes(request, nodes)})
    context = _waiting(request)
    if is_fragment(request):
        return fragment(request, "queue/rows.html", context)
    return render(request, "queue/page.html", context | {"nodes": nodes})


def _waiting(request: PageRequest) -> dict[str, Any]:
    count = waiting_count()
    page, now = Paginator(range(count), PAGE).get_page(request.GET.get("page")), database_now()
    offset = PAGE * (page.number - 1)
    places = waiting_places(request.user, offset=offset, limit=PAGE, now=now)
    return {
        "availability": availability(now),
        "page": page,
        "count": count,
        "places": places,
        "named": jobs_named_in(request.user, (place.job.wait_text for place in places if place.job)),
        "policy": live_policy().policy,
        "reservations": reservations(request.user),
    }


def _lanes(request: PageRequest, nodes: Page[Node]) -> Chart:
    now = database_now()
    since, until = now - WINDOW, now + AHEAD
    shown = lanes(request.user, nodes.object_list, since=since, now=now, until=until)
    return lanes_chart(shown, since=since, now=now)
