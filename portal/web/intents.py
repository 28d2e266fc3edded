"""A new job said in a sentence.

The values that fill its form are shown before anything happens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from portal.accounts import time_zones
from portal.accounts.requests import PageRequest
from portal.accounts.selectors import own_teams
from portal.clock import database_now
from portal.intents.core.types import MAX_CHARACTERS, FilledField
from portal.intents.services import FILES, Understood, understand
from portal.web.common.param_fields import PREFIX, form_value
from portal.web.common.time_fields import FORMAT
from portal.web.templatetags.portal_format import words
from scheduler.core.job_terms import JOB_TERMS
from scheduler.services.provenance.sealed import sealed
from trainer.recipes import PARAMS


class SentenceForm(forms.Form):
    """A sentence, and the zone in which its clock times are meant."""

    said = forms.CharField(
        max_length=MAX_CHARACTERS,
        strip=False,
        error_messages={
            "required": "Write what is to be trained, on which file.",
            "max_length": f"Write at most {MAX_CHARACTERS:,} characters.",
        },
    )
    time_zone = forms.CharField(max_length=64, required=False)


@dataclass(frozen=True, slots=True)
class Line:
    """A value that was understood: label and input, how it is shown, and why."""

    label: str
    input: str
    shown: str
    origin: str
    because: str


@login_required
@require_POST
def say(request: PageRequest) -> HttpResponse:
    """Show what a sentence says of a job.

    It is a fragment with values for the form; nothing is stored.
    """
    form = SentenceForm(request.POST)
    if not form.is_valid():
        errors = [str(error) for found in form.errors.values() for error in found]
        return render(request, "jobs/intent/understood.html", {"errors": errors})
    text = form.cleaned_data["said"]
    zone = time_zones.named(form.cleaned_data["time_zone"]) or timezone.get_current_timezone()
    found = understand(user=request.user, text=text, now=database_now(), zone=zone)
    return render(request, "jobs/intent/understood.html", _context(request, text, found, zone))


def _context(request: PageRequest, text: str, found: Understood, zone: tzinfo) -> dict[str, Any]:
    teams = {team.name: str(team.pk) for team in own_teams(request.user)}
    lines, fill = [], []
    for name, one in found.reading.fields.items():
        line = _line(text, name, one, zone)
        lines.append(line)
        keys = {"team": teams, **dict.fromkeys(FILES, found.file_ids)}.get(name)
        value = keys[one.value] if keys else one.value
        mark = f"{line.origin}: {line.because}"
        fill.append({"name": _input(name), "value": _typed(value, zone), "label": line.shown, "mark": mark})
    question = found.question
    return {
        "lines": lines,
        "fill": fill,
        "question": question,
        "choices": [(offer.label, _button(offer.field, offer.value, zone)) for offer in question.choices]
        if question
        else [],
        "unknown": [text[start:end] for start, end in found.reading.unknown],
        "complaints": [(_label(name), complaint) for name, complaint in found.complaints.items()],
        "notes": found.reading.notes,
        "zone": zone,
        "seal": sealed(request.user, found.read_values),
    }


def _line(text: str, name: str, one: FilledField, zone: tzinfo) -> Line:
    moment = isinstance(one.value, datetime)
    shown = f"{one.value.astimezone(zone):%a %d %B %Y, %H:%M}" if moment else str(form_value(one.value))
    return Line(_label(name), _input(name), shown, one.origin, one.because(text))


def _label(name: str) -> str:
    return JOB_TERMS[name].label if name in JOB_TERMS else words(name)


def _input(name: str) -> str:
    return PREFIX + name if name in PARAMS else name


def _typed(value: Any, zone: tzinfo) -> str:
    """A value as a person would have typed it."""
    if isinstance(value, datetime):
        return value.astimezone(zone).strftime(FORMAT)
    return str(form_value(value))


def _button(name: str, value: Any, zone: tzinfo) -> str:
    """The values that a button with an answer writes into the form, as JSON."""
    return json.dumps({_input(name): _typed(value, zone)})
