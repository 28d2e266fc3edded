"""Uploads that a person sees.

The page shows their size and the jobs that use them, and lets people delete them.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.common.refusals import refusals_shown
from scheduler.selectors.files import deletable_files, get_file, storage_of, visible_files, with_uses
from scheduler.services.deletions import delete_file

PAGE = 25


@login_required
@require_GET
def file_list(request: PageRequest) -> HttpResponse:
    """The newest files first."""
    files = with_uses(visible_files(request.user), request.user).select_related("owner", "team")
    page = Paginator(files.defer("lengths"), PAGE).get_page(request.GET.get("page"))
    deletable = set(deletable_files(request.user).filter(pk__in=[file.pk for file in page]))
    rows = [(file, file in deletable) for file in page]
    context = {"page": page, "rows": rows, "storage": storage_of(request.user)}
    return render(request, "files/list.html", context)


@login_required
@require_POST
def file_delete(request: PageRequest, file_id: str) -> HttpResponse:
    """Delete a file, or say which jobs need it."""
    with refusals_shown(request):
        file = get_file(request.user, file_id)
        delete_file(file=file, actor=request.user, now=database_now())
        messages.info(request, f"{file.filename} has been deleted.")
    return redirect("files")
