"""Past executions, for administrators.

The page shows the known executions by source, the export, and an import from a file.
"""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from knowledge.core.data.measurement import FROM_LOG, OWN
from knowledge.core.data.sources.registry import SOURCES
from knowledge.core.data.sources.table import BadTable
from knowledge.importing.service import ImportReport
from knowledge.selectors import counts_by_source, executions_matching
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.limits.bodies import HISTORIES, takes_files
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.form_base import FilterForm, SearchField, StyledForm
from portal.web.common.number_fields import WholeNumberField
from scheduler.errors import FileTooLarge
from scheduler.services.history import LARGEST, MOST_LINES, import_upload

PAGE = 25
NAMES = {
    "lfb": "LLMFineTuningBench", "fma": "fms-acceleration", "mlperf": "MLPerf", "litgpt": "LitGPT",
    "vectorlm": "VectorLM", "csv": "this portal's own columns", OWN: "measured here",
    FROM_LOG: "logs of runs elsewhere",
    "llmfinetuningbench": "LLMFineTuningBench, as shipped",
}  # fmt: skip


class ImportForm(StyledForm):
    prefix_id = "import"
    file = forms.FileField(
        label="CSV file",
        help_text=f"Up to {LARGEST // 1_000_000} MB and {MOST_LINES:,} lines; "
        "import larger files with manage.py import_history.",
    )
    source = forms.ChoiceField(
        choices=[("", "detect from the columns"), *((name, NAMES.get(name, name)) for name in SOURCES)],
        required=False, label="Format of the columns",
    )  # fmt: skip


class HistoryFilters(FilterForm):
    """`sources`: those that can be chosen."""

    q = SearchField(required=False, max_length=200, label="Model")
    source = forms.CharField(required=False, max_length=60, widget=forms.Select)
    learnt = forms.ChoiceField(
        required=False, label="Used for training", choices=[("", "all"), ("yes", "yes"), ("no", "no")]
    )
    after = WholeNumberField(required=False, min_value=1, max_value=2**62, widget=forms.HiddenInput)

    def __init__(self, *args: Any, sources: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = [("", "any"), *((source, _name(source)) for source in sources)]
        self.fields["source"].widget.choices = offered

    @property
    def other_errors(self) -> list[str]:
        return [f"after: {text}" for text in self.errors.get("after", [])]


@takes_files(HISTORIES)
@login_required
@require_http_methods(["GET", "POST"])
def history(request: PageRequest) -> HttpResponse:
    """An import is all or nothing; wrong cells are listed by line and column."""
    refuse_others_than_admins(request)
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
    counted = counts_by_source()
    sources = [(_name(source), rows) for source, rows in counted.items()]
    filters = HistoryFilters(request.GET, sources=list(counted))
    context = {"form": form, "wrong": wrong, "sources": sources, "filters": filters, **_rows(filters)}
    refused = request.method == "POST" or not filters.is_valid()
    return render(request, "knowledge/history.html", context, status=400 if refused else 200)


def _rows(filters: HistoryFilters) -> dict[str, Any]:
    """One page of the executions that match, and where the next one begins."""
    if not filters.is_valid():
        return {"executions": [], "next": ""}
    chosen = filters.cleaned_data
    rows = executions_matching(text=chosen["q"], source=chosen["source"], learnt=chosen["learnt"])
    after = chosen["after"]
    found = list((rows.filter(pk__lt=after) if after else rows)[: PAGE + 1])
    return {"executions": found[:PAGE], "next": found[PAGE - 1].pk if len(found) > PAGE else ""}


def _imported(request: PageRequest, form: ImportForm) -> ImportReport:
    file = form.cleaned_data["file"]
    return import_upload(
        stream=cast(BinaryIO, file.file),
        filename=file.name or "",
        source=form.cleaned_data["source"] or None,
        actor=request.user,
        now=database_now(),
    )


def _name(source: str) -> str:
    return NAMES.get(source, source)
