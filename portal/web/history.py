"""Past executions: what is known by source, the export, and an import from a file; for administrators."""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from knowledge.core.sources.registry import SOURCES
from knowledge.core.sources.table import BadTable
from knowledge.importing import ImportReport
from knowledge.selectors import OWN, counts_by_source
from portal.accounts.requests import PageRequest
from portal.web.nodes import require_admin
from portal.web.styled import StyledForm
from scheduler.errors import FileTooLarge
from scheduler.services.history import LARGEST, import_upload

NAMES = {
    "lfb": "LLMFineTuningBench", "fma": "fms-acceleration", "mlperf": "MLPerf", "litgpt": "LitGPT",
    "vectorlm": "VectorLM", "csv": "this portal's own columns",
}  # fmt: skip


class ImportForm(StyledForm):
    prefix_id = "import"
    file = forms.FileField(
        label="CSV file",
        help_text=f"Up to {LARGEST // 1_000_000} MB; larger ones with manage.py import_history.",
    )
    source = forms.ChoiceField(
        choices=[("", "found by its columns"), *((name, NAMES.get(name, name)) for name in SOURCES)],
        required=False, label="Its columns are those of",
    )  # fmt: skip


@login_required
@require_http_methods(["GET", "POST"])
def history(request: PageRequest) -> HttpResponse:
    """An import is all or nothing; wrong cells are listed by line and column."""
    require_admin(request)
    form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
    wrong: list[tuple[int, str, str]] = []
    if request.method == "POST" and form.is_valid():
        try:
            report = _imported(request, form)
            messages.info(request, f"{form.cleaned_data['file'].name}: {report}.")
            return redirect("history")
        except BadTable as bad:
            wrong = bad.errors
        except FileTooLarge as large:
            form.add_error("file", str(large))
    sources = [(_name(source), rows) for source, rows in counts_by_source().items()]
    context: dict[str, Any] = {"form": form, "wrong": wrong, "sources": sources}
    refused = request.method == "POST"
    return render(request, "knowledge/history.html", context, status=400 if refused else 200)


def _imported(request: PageRequest, form: ImportForm) -> ImportReport:
    file = form.cleaned_data["file"]
    return import_upload(
        stream=cast(BinaryIO, file.file),
        filename=file.name or "",
        source=form.cleaned_data["source"] or None,
        actor=request.user,
        now=timezone.now(),
    )


def _name(source: str) -> str:
    return "measured here" if source == OWN else source
