"""Training data on the page of a new job.

A file is stored as soon as it is chosen, and reported on.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import Any, BinaryIO, cast

from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.limits.bodies import TRAINING_DATA, takes_files
from portal.web.charts.lengths import lengths_histogram
from portal.web.jobs.forms import UPLOADS, SubmitForm
from scheduler.errors import (
    BadFile,
    BadParameters,
    FileTooLarge,
    NotFound,
    OverQuota,
    SchedulerError,
    StorageFull,
)
from scheduler.models import DatasetFile
from scheduler.selectors.files import get_file
from scheduler.services.files.uploads import path_of, store_file
from trainer import formats

PREVIEWED_ROWS, PREVIEWED_CHARACTERS = 3, 300


REFUSALS = (BadFile, BadParameters, FileTooLarge, OverQuota, StorageFull)


def stored(request: PageRequest, file: UploadedFile[Any]) -> DatasetFile:
    """Raises one of REFUSALS."""
    stream = cast(BinaryIO, file.file)
    return store_file(owner=request.user, stream=stream, filename=file.name or "", now=database_now())


def complaints(wrong: SchedulerError) -> list[str]:
    """Why an upload was refused, line by line where its lines are the reason."""
    if isinstance(wrong, BadParameters):
        return list(wrong.fields.values())
    if not isinstance(wrong, BadFile):
        return [str(wrong)]
    alike = groupby(wrong.lines, key=lambda entry: entry[1])
    return [_lines([line for line, _ in entries]) + message for message, entries in alike]


def _lines(numbers: list[int]) -> str:
    """Return the line numbers as text, e.g. `line 3: ` or `lines 3 to 20: `.

    The text is empty for an error of the whole file.
    """
    if len(numbers) > 1:
        return f"lines {numbers[0]} to {numbers[-1]}: "
    return f"line {numbers[0]}: " if numbers[0] else ""


@takes_files(TRAINING_DATA)
@login_required
@require_POST
def upload(request: PageRequest) -> HttpResponse:
    """Take a file as soon as it is chosen.

    Answers with the file's field, which shows the file or the errors.
    """
    name = next((name for name in UPLOADS if name in request.FILES), "upload")
    found, errors = None, ["No file arrived; choose it again."]
    if file := request.FILES.get(name):
        try:
            found, errors = stored(request, file), []
        except REFUSALS as wrong:
            errors = complaints(wrong)
    form = SubmitForm(user=request.user, initial={UPLOADS[name]: found})
    context = {"field": form[UPLOADS[name]], "upload": form[name], "file_errors": errors}
    answer = render(request, "jobs/file_field.html", {**context, **_report(found)})
    answer["HX-Trigger-After-Settle"] = "file-stored"
    return answer


@login_required
@require_GET
def file_report(request: PageRequest) -> HttpResponse:
    """Show the content of the chosen file.

    It is a fragment, asked for when another file is chosen.
    """
    name = next((name for name in UPLOADS.values() if name in request.GET), "training_file")
    try:
        file = get_file(request.user, request.GET.get(name, "").replace("\x00", ""))
    except NotFound:
        return HttpResponse()
    return render(request, "jobs/file_report.html", _report(file))


def _report(file: DatasetFile | None) -> dict[str, Any]:
    if file is None:
        return {}
    path = path_of(file.sha256)
    rows, problem = [], ""
    try:
        rows = list(islice(formats.rows(path), PREVIEWED_ROWS)) if path.exists() else []
    except formats.FormatError as wrong:  # stored when more was let pass
        problem = f"line {wrong.errors[0].line}: {wrong.errors[0].message}"
    return {
        "file": file,
        "problem": problem,
        "preview": [_parts(row) for row in rows],
        "lengths": lengths_histogram(file.lengths),
    }


def _parts(row: formats.Row) -> list[tuple[str, str]]:
    """A row as (who or what, text), long texts cut."""
    if isinstance(row, formats.Chat):
        tools = [("tools", str(tool["function"]["name"])) for tool in row.tools]
        parts = [*tools, *((turn.role, turn.plain) for turn in row.messages)]
    elif isinstance(row, formats.PromptCompletion):
        parts = [("prompt", row.prompt), ("completion", row.completion)]
    else:
        parts = [("text", row.text)]
    return [(name, _cut(text)) for name, text in parts]


def _cut(text: str) -> str:
    return text if len(text) <= PREVIEWED_CHARACTERS else text[:PREVIEWED_CHARACTERS] + " …"
