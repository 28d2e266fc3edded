"""The queue: who waits in which place, and what every GPU did in the last hours."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.gpu_timeline import lanes_chart
from portal.web.common.partials import fragment, is_fragment
from scheduler.selectors.cluster.preemptions import reservations
from scheduler.selectors.cluster.queue import lanes, nodes_with_gpus, waiting_count, waiting_places
from scheduler.selectors.cluster.stops import recent_levels, recent_stops
from scheduler.selectors.policy import current_policy

PAGE = 25
NODES = 8
WINDOW = timedelta(hours=6)
A_DAY = timedelta(days=1)


@login_required
@require_GET
def queue(request: PageRequest) -> HttpResponse:
    """The waiting jobs with the lanes.

    For htmx the waiting jobs alone, or what the last day brought.
    """
    if is_fragment(request) and request.GET.get("last"):
        since = database_now() - A_DAY
        return fragment(
            request, "queue/last_day.html", {"stops": recent_stops(since), "levels": recent_levels(since)}
        )
    now = database_now()
    context = _waiting(request, now)
    if is_fragment(request):
        return fragment(request, "queue/rows.html", context)
    return render(request, "queue/page.html", context | _lanes(request, now))


def _waiting(request: PageRequest, now: datetime) -> dict[str, Any]:
    count = waiting_count()
    page = Paginator(range(count), PAGE).get_page(request.GET.get("page"))
    offset = PAGE * (page.number - 1)
    return {
        "page": page,
        "count": count,
        "places": waiting_places(request.user, offset=offset, limit=PAGE, now=now),
        "policy": current_policy(),
        "reservations": reservations(request.user),
    }


def _lanes(request: PageRequest, now: datetime) -> dict[str, Any]:
    nodes = Paginator(nodes_with_gpus(), NODES).get_page(request.GET.get("nodes"))
    shown = lanes(request.user, nodes.object_list, since=now - WINDOW)
    return {
        "nodes": nodes,
        "chart": lanes_chart(shown, since=now - WINDOW, now=now),
    }
