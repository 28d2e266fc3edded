"""Read a training script and begin a new job with what it states.

Its files are kept for a while, so that a changed upload is read faster; nothing is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_http_methods

from knowledge.reading.manifest import ScriptManifest, UnreadableUpload, from_upload
from knowledge.reading.reading_json import evidence
from knowledge.reading.recipe_values import taken
from knowledge.reading.syntax.kind_of_text import name_by_text
from knowledge.reading.types import FIELDS, MODEL, FieldValue, Reading, Statement
from knowledge.script_readings.trees import KeptReading, kept_reading, read_upload, reader_server
from portal.accounts.models import User
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.limits.bodies import SCRIPTS, takes_files
from portal.web.common.form_base import StyledForm
from portal.web.common.param_fields import form_value
from portal.web.common.read_fields import as_fields
from portal.web.templatetags.portal_format import words
from scheduler import hints
from scheduler.selectors.analysis.similar_jobs import similar_jobs
from scheduler.services.provenance.of_script import read_values, shown_place
from scheduler.services.provenance.read_values import DERIVED
from scheduler.services.provenance.sealed import sealed, unsealed

CERTAIN = 0.85


class ScriptForm(StyledForm):
    """An archive or a file, or a script as text, with the command that starts it."""

    upload = forms.FileField(
        required=False,
        label="Files",
        help_text="A zip or tar.gz of the training's files, or one file of them.",
    )
    text = forms.CharField(
        required=False,
        max_length=200_000,
        strip=False,
        label="or a script or configuration as text",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )
    command = forms.CharField(
        required=False,
        max_length=4_000,
        help_text="Optional: what starts the training, e.g. accelerate launch train.py --config c.yaml",
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors and not any(values.get(name) for name in ("upload", "text", "command")):
            self.add_error("upload", "Choose a file, or paste a script or a command.")
        return values


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A field as it is shown.

    It has its value, where it stands, how sure it is, and what it won over.
    """

    label: str
    value: str
    file: str
    line: int
    text: str
    certain: bool
    derived: bool
    by_model: bool
    lost: tuple[str, ...]


@takes_files(SCRIPTS)
@login_required
@require_http_methods(["GET", "POST"])
def import_script(request: PageRequest) -> HttpResponse:
    """Show what a script states, line by line, with a link that begins a job with it."""
    sent = request.method == "POST"
    form = ScriptForm(request.POST, request.FILES) if sent else ScriptForm()
    if not sent or not form.is_valid():
        return render(request, "jobs/import.html", {"form": form}, status=400 if form.is_bound else 200)
    try:
        manifest = _manifest(form.cleaned_data["upload"], form.cleaned_data["text"])
    except UnreadableUpload as refused:
        form.add_error("upload", str(refused))
        return render(request, "jobs/import.html", {"form": form}, status=400)
    kept = read_upload(
        owner=request.user, manifest=manifest, command=form.cleaned_data["command"], now=database_now()
    )
    if kept.is_awaited:
        hints.read_scripts()
    return render(request, "jobs/import.html", {"form": form, **_context(request.user, kept)})


@login_required
@require_GET
def kept_import(request: PageRequest, tree_id: int) -> HttpResponse:
    """Show a reading of one's own again, with what a model has added."""
    kept = kept_reading(owner=request.user, tree_id=tree_id)
    if kept is None:
        raise Http404
    return render(request, "jobs/import.html", {"form": ScriptForm(), **_context(request.user, kept)})


def values_of(user: User, seal: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the form's values and origins that a link of this page carries.

    There are none if it is too old or another person's.
    """
    found = unsealed(user, seal)
    if found is None:
        return {}, {}
    origins = {
        name: f"{'Follows from' if one.origin == DERIVED else 'From'} {one.because}."
        for name, one in found.values.items()
    }
    return as_fields({name: one.value for name, one in found.values.items()}), as_fields(origins)


def _manifest(upload: UploadedFile[Any] | None, text: str) -> ScriptManifest:
    if upload is not None:
        return from_upload(upload.name or "script", upload.read())
    return from_upload(name_by_text(text), text.encode())


def _context(user: User, kept: KeptReading) -> dict[str, Any]:
    reading, manifest = kept.reading, kept.manifest
    server = reader_server(user)
    job = taken(reading)
    lines = [_line(name, reading.values[name], manifest) for name in FIELDS if name in reading.values]
    torn = [
        (words(name.replace("+", " and ")), [_side(one, manifest) for one in found])
        for name, found in reading.contradictions.items()
    ]
    return {
        "lines": lines,
        "torn": torn,
        "unstated": _unstated(reading),
        "unsupported": [words(name) for name in reading.unsupported],
        "unknown_keys": reading.unknown_keys,
        "unreadable": reading.unreadable,
        "left_out": manifest.left_out,
        "left": [words(name) for name in job.left],
        "refused": {words(name): why for name, why in job.refused.items()},
        "read": True,
        "kept": kept,
        "similar": similar_jobs(user, _facts(reading), database_now()),
        "model_host": server.host if server else "",
        "seal": sealed(user, read_values(reading, job, manifest)),
    }


def _unstated(reading: Reading) -> list[str]:
    """Fields of which the files and the command say nothing."""
    torn = {part for name in reading.contradictions for part in name.split("+")}
    return [words(name) for name in FIELDS if name not in reading.values and name not in torn]


def _facts(reading: Reading) -> dict[str, Any]:
    values = {name: one.value for name, one in reading.values.items() if not isinstance(one.value, list)}
    dataset = str(values.get("dataset") or "").rpartition("/")[2] or None
    return {**values, "dataset": dataset}


def _line(name: str, value: FieldValue, manifest: ScriptManifest) -> ReadLine:
    place = evidence(value.evidence[0], manifest)
    lost = tuple(f"{_shown(one.value)} in {_side(one, manifest)}" for one in value.overridden[:3])
    return ReadLine(
        label=words(name),
        value=_shown(value.value),
        file=place["file"],
        line=place["line"],
        text=place["text"],
        certain=value.confidence >= CERTAIN and value.by != MODEL,
        derived=value.derived,
        by_model=value.by == MODEL,
        lost=lost,
    )


def _side(one: Statement, manifest: ScriptManifest) -> str:
    return shown_place(one.place, manifest)


def _shown(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(form_value(value))
