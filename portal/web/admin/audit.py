"""The audit record, for administrators."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.models import AuditEntry
from portal.accounts.requests import PageRequest
from portal.accounts.selectors import audit_matching, visible_audit
from portal.web.admin.audit_words import details, page_of
from portal.web.common.access import refuse_others_than_admins
from portal.web.people.forms import AuditFilters
from scheduler.selectors.audit_names import names_of

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
        "rows": _rows(found[:PAGE]),
        "filtered": any(filters.cleaned_data.values()),
        "next": found[PAGE - 1].pk if len(found) > PAGE else "",
    }
    return render(request, "people/audit.html", context)


def _rows(entries: list[AuditEntry]) -> list[dict[str, Any]]:
    """Entries with the names and pages of what they are about, and details in words."""
    names = names_of(entry.target for entry in entries)
    return [
        {
            "entry": entry,
            "action": entry.action.replace(".", " "),  # earlier releases stored "history.imported"
            "name": names.get(entry.target, ""),
            "page": page_of(entry.target) if entry.target in names else "",
            "details": details(entry.action, entry.data),
        }
        for entry in entries
    ]
