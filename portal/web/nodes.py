"""Nodes: the list, and the command that makes another machine one of them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.web.fragments import fragment, is_fragment
from scheduler.selectors.jobs import visible_jobs
from scheduler.selectors.nodes import all_nodes
from scheduler.services.nodes import create_join_token

LIFETIME_S = 3600


def require_admin(request: PageRequest) -> None:
    """Raises PermissionDenied."""
    if not request.user.is_admin:
        raise PermissionDenied


def visible_live_jobs(user: User) -> set[str]:
    """Ids of live jobs that the person may see: others' jobs on a node are shown without a name."""
    return set(visible_jobs(user).filter(attempts__ended_at__isnull=True).values_list("pk", flat=True))


@login_required
@require_GET
def node_list(request: PageRequest) -> HttpResponse:
    context: dict[str, Any] = {"nodes": all_nodes(), "visible": visible_live_jobs(request.user)}
    if is_fragment(request):
        return fragment(request, "nodes/rows.html", context)
    return render(request, "nodes/list.html", context)


@login_required
@require_POST
def join_token(request: PageRequest) -> HttpResponse:
    """Show, once, the command that makes another machine a node of this portal."""
    require_admin(request)
    token = create_join_token(actor=request.user, now=timezone.now(), lifetime_s=LIFETIME_S)
    portal = request.build_absolute_uri("/").rstrip("/")
    command = f"python -m trainer.agent --portal {portal} --join {token}"
    return render(request, "nodes/join.html", {"command": command, "minutes": LIFETIME_S // 60})
