"""How many jobs wait."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from scheduler.selectors.cluster.queue import waiting_count


@login_required
@require_GET
def waiting(request: PageRequest) -> HttpResponse:
    """One number."""
    return render(request, "jobs/waiting.html", {"count": waiting_count()})
