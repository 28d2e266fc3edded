"""Nodes: the list, and the command that makes another machine one of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from knowledge.catalogue.portal_catalogue import portal_catalogue
from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.node_package import join_command
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.partials import fragment, is_fragment
from portal.web.nodes.filters import NodeFilters
from portal.wheels import BuildFailed
from scheduler.models import Node
from scheduler.selectors.cluster.availability import Availability, availability
from scheduler.selectors.cluster.capacity import load
from scheduler.selectors.jobs import visible_jobs
from scheduler.selectors.nodes import all_nodes, matching
from scheduler.selectors.silence import NODE_STATES
from scheduler.services.nodes.register import create_join_token

log = logging.getLogger(__name__)
LIFETIME_S = 3600
PAGE = 20


def visible_live_jobs(user: User, nodes: Iterable[Node]) -> set[str]:
    """Return the jobs on these nodes that the person may see.

    The other jobs are shown without a name.
    """
    on_nodes = {claim.attempt.job_id for node in nodes for claim in node.live_claims}  # type: ignore[attr-defined]
    return set(visible_jobs(user).filter(pk__in=on_nodes).values_list("pk", flat=True))


@login_required
@require_GET
def node_list(request: PageRequest) -> HttpResponse:
    """One page of nodes under the cluster's load; for htmx the same page's rows alone."""
    now = database_now()
    models, available = load(now), availability(now)
    filters = NodeFilters(request.GET, gpus=sorted(model["model"] for model in models))
    known = portal_catalogue()
    unknown = [model["model"] for model in models if known.known_gpu(model["model"]) is None]
    context: dict[str, Any] = {"filters": filters, "states": _states(available), "unknown_gpus": unknown}
    if not filters.is_valid():
        return render(request, "nodes/list.html", context, status=400)
    chosen = filters.cleaned_data
    found = matching(all_nodes(), text=chosen["q"], gpu=chosen["gpu"], state=chosen["state"], now=now)
    pages = Paginator(found, PAGE)
    if not filters.in_use:
        pages.count = context["states"][0][-1]  # all nodes, counted already
    page = pages.get_page(request.GET.get("page"))
    context |= {
        "page": page,
        "load": models,
        "availability": available,
        "state": chosen["state"],
        "filtered": filters.in_use,
    }
    context["visible"] = visible_live_jobs(request.user, page)
    if is_fragment(request):
        return fragment(request, "nodes/rows.html", context)
    return render(request, "nodes/list.html", context)


def _states(found: Availability) -> list[tuple[str, str, int]]:
    """(value of the filter, label, nodes) for each link over the list."""
    return [("", "all", found.nodes), *((state, state, found.count(state)) for state in NODE_STATES)]


@login_required
@require_POST
def join_token(request: PageRequest) -> HttpResponse:
    """Show, once, the command that makes another machine a node of this portal."""
    refuse_others_than_admins(request)
    portal = request.build_absolute_uri("/").rstrip("/")
    token = create_join_token(actor=request.user, now=database_now(), lifetime_s=LIFETIME_S)
    try:
        command = join_command(portal=portal, token=token)
    except BuildFailed as failed:
        log.exception("the package of nodes cannot be built")
        return render(request, "nodes/join.html", {"failed": str(failed)})
    return render(request, "nodes/join.html", {"command": command, "minutes": LIFETIME_S // 60})
