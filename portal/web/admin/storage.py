"""What takes room on the portal's disk, for administrators."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.disk import disk, rest_bytes
from portal.web.common.access import refuse_others_than_admins
from scheduler.selectors.analysis.storage import jobs_by_room, people_by_room, stored_bytes


@login_required
@require_GET
def storage(request: PageRequest) -> HttpResponse:
    refuse_others_than_admins(request)
    context = {
        "disk": disk(),
        "kinds": stored_bytes(),
        "rest": rest_bytes(),
        "people": people_by_room(),
        "jobs": jobs_by_room(),
    }
    return render(request, "storage/page.html", context)
