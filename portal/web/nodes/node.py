"""The page of one node.

It shows its GPUs, its current work and its history, and lets administrators act on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from knowledge.catalogue.portal_catalogue import portal_catalogue
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.partials import fragment
from portal.web.common.refusals import or_404, refusals_shown
from portal.web.nodes.calibration import calibration_panel
from portal.web.nodes.forms import DrainForm, PriceForm, ReasonForm, ResumeForm
from portal.web.nodes.nodes import visible_live_jobs
from scheduler.core.placement.levels import TopologyLevel
from scheduler.models import Node
from scheduler.selectors.cluster.topology import picture_of
from scheduler.selectors.nodes import get_node, node_events, was_removed
from scheduler.services.deletions import remove_node
from scheduler.services.nodes.price import set_price
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.states import NodeState
from trainer.architectures import KERNELS
from trainer.recipes import PARAMS

EVENTS = 100
TUNINGS = PARAMS["tuning"].choices


def shown_node(node_id: str) -> Node:
    """Raises Http404."""
    return or_404(get_node, node_id)


@login_required
@require_GET
def node_detail(request: PageRequest, node_id: str) -> HttpResponse:
    return node_page(request, shown_node(node_id))


def node_page(request: PageRequest, node: Node, *, status: int = 200, **shown: Any) -> HttpResponse:
    """The whole page; `shown` replaces parts of it, such as a form that was refused."""
    panel = calibration_panel(node) if request.user.is_admin else {}
    context = {**_live(request, node), **_page(node), **panel, **shown}
    return render(request, "nodes/detail.html", context, status=status)


@login_required
@require_GET
def node_live(request: PageRequest, node_id: str) -> HttpResponse:
    """State, GPUs and jobs: what changes while the page is open.

    A page whose node was removed meanwhile says so, and asks no more.
    """
    if was_removed(node_id):
        return render(request, "nodes/removed.html")
    return fragment(request, "nodes/live.html", _live(request, shown_node(node_id)))


def _live(request: PageRequest, node: Node) -> dict[str, Any]:
    known, models = portal_catalogue(), {gpu.model for gpu in node.gpus.all()}
    return {
        "node": node,
        "tunings": [tuning for tuning in TUNINGS if tuning not in node.cannot_train],
        "kernels": [name for name in KERNELS.values() if name in node.software],
        "picture": picture_of(node),
        "visible": visible_live_jobs(request.user, [node]),
        "unknown_gpus": sorted(model for model in models if known.known_gpu(model) is None),
    }


def _page(node: Node) -> dict[str, Any]:
    price = node.price_per_gpu_hour
    gives_work = node.state == NodeState.READY
    return {
        "events": node_events(node)[:EVENTS],
        "links": _links(node),
        "link_speeds": [(link, TopologyLevel.of_word(link["level"]).phrase) for link in node.link_speeds],
        "speed_tests": node.speed_tests.all(),
        "verb": "drain" if gives_work else "resume",
        "verb_form": DrainForm()
        if gives_work
        else ReasonForm()
        if node.other_facts is None
        else ResumeForm(),
        "price_form": PriceForm(initial={"price": price, "seen": repr(price)}),
    }


def _links(node: Node) -> list[tuple[int, list[str]]]:
    """Return how each GPU reaches each other one, row by row.

    The list is empty where the node reports nothing.
    """
    gpus = list(node.gpus.all())
    if not any(gpu.links for gpu in gpus):
        return []
    return [(a.index, ["" if a is b else a.links.get(str(b.index), "–") for b in gpus]) for a in gpus]


@login_required
@require_POST
def node_verb(request: PageRequest, node_id: str, verb: str) -> HttpResponse:
    """Drain, resume, price or remove; then show the node again, with what was wrong."""
    refuse_others_than_admins(request)
    if verb not in VERBS:
        raise Http404
    node, (kind, act) = shown_node(node_id), VERBS[verb]
    form = kind(request.POST)
    if not form.is_valid():
        shown = {"price_form" if verb == "price" else "verb_form": form, "verb": verb}
        return node_page(request, node, status=400, **shown)
    with refusals_shown(request):
        act(node=node, actor=request.user, now=database_now(), **form.cleaned_data)
        if verb == "remove":
            return redirect("nodes")
    return redirect("node", node_id)


VERBS: dict[str, tuple[type[forms.Form], Callable[..., object]]] = {
    "drain": (DrainForm, drain_node),
    "resume": (ResumeForm, resume_node),
    "price": (PriceForm, set_price),
    "remove": (forms.Form, remove_node),
}
