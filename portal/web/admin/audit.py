"""The audit record, for administrators."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.requests import PageRequest
from portal.accounts.selectors import audit_matching, visible_audit
from portal.web.common.access import refuse_others_than_admins
from portal.web.people.forms import AuditFilters

PAGE = 50


@login_required
@require_GET
def audit_list(request: PageRequest) -> HttpResponse:
    refuse_others_than_admins(request)
    filters = AuditFilters(request.GET)
    if not filters.is_valid():
        return render(request, "people/audit.html", {"filters": filters}, status=400)
    chosen = dict(filters.cleaned_data)
    after = chosen.pop("after")
    rows = audit_matching(visible_audit(request.user), **chosen)
    found = list(rows.filter(pk__lt=after)[: PAGE + 1] if after else rows[: PAGE + 1])
    context = {
        "filters": filters,
        "entries": found[:PAGE],
        "filtered": any(filters.cleaned_data.values()),
        "next": found[PAGE - 1].pk if len(found) > PAGE else "",
    }
    return render(request, "people/audit.html", context)
