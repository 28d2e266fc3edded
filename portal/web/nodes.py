"""Nodes: their state, their GPUs and what runs there; join, drain and resume for administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.requests import PageRequest
from scheduler.errors import NotFound, SchedulerError
from scheduler.models import Node
from scheduler.selectors.nodes import all_nodes, get_node
from scheduler.services.nodes import create_join_token, drain_node, resume_node

LIFETIME_S = 3600


@login_required
@require_GET
def node_list(request: PageRequest) -> HttpResponse:
    live = request.headers.get("HX-Request") == "true"
    context = {"nodes": all_nodes(), "user": request.user}
    return render(request, "nodes/rows.html" if live else "nodes/list.html", context)


def _admin(request: PageRequest) -> None:
    if not request.user.is_admin:
        raise PermissionDenied


@login_required
@require_POST
def join_token(request: PageRequest) -> HttpResponse:
    """Show, once, the command that makes another machine a node of this portal."""
    _admin(request)
    token = create_join_token(actor=request.user, now=timezone.now(), lifetime_s=LIFETIME_S)
    portal = request.build_absolute_uri("/").rstrip("/")
    command = f"python -m trainer.agent --portal {portal} --join {token}"
    return render(request, "nodes/join.html", {"command": command, "minutes": LIFETIME_S // 60})


@login_required
@require_POST
def node_verb(request: PageRequest, node_id: str, verb: str) -> HttpResponse:
    """Drain or resume with a reason, then show the nodes again."""
    _admin(request)
    act = _VERBS.get(verb)
    try:
        if act is None:
            raise NotFound("There is no such verb.")
        act(
            request,
            node=get_node(node_id),
            actor=request.user,
            reason=request.POST.get("reason", "")[:500],
            now=timezone.now(),
        )
    except NotFound as unknown:
        raise Http404 from unknown
    except SchedulerError as refused:
        messages.warning(request, str(refused))
    return redirect("nodes")


def _drain(request: PageRequest, **given: Any) -> Node:
    return drain_node(move_jobs=request.POST.get("move_jobs") == "on", **given)


def _resume(request: PageRequest, **given: Any) -> Node:  # noqa: ARG001
    return resume_node(**given)


_VERBS: dict[str, Callable[..., Node]] = {"drain": _drain, "resume": _resume}
