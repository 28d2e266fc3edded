"""Uploads that a person sees: what they take, which jobs use them, and their deletion."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.errors import NotAllowed
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from scheduler.errors import Conflict, NotFound
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
    try:
        file = get_file(request.user, file_id)
        delete_file(file=file, actor=request.user, now=database_now())
        messages.info(request, f"{file.filename} is deleted.")
    except NotFound as unknown:
        raise Http404 from unknown
    except NotAllowed as refused:
        raise PermissionDenied from refused
    except Conflict as needed:
        messages.warning(request, str(needed))
    return redirect("files")
