"""A log read with learnt forms; new ones wait for a worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from knowledge.language.consent import server_for
from knowledge.reading.logs.elsewhere import LogElsewhere, read_log
from knowledge.reading.logs.formats import LogShape, UnknownForm
from knowledge.reading_models import LogFormat, ModelState
from portal.accounts.models import User

MOST_WAITING = 5  # of a person
ASKED_AGAIN, FORGOTTEN = timedelta(days=1), timedelta(days=90)
ANSWERS_WITHIN = timedelta(minutes=5)
WAITING = (ModelState.ASKED, ModelState.READING)


def read_with_formats(reader: User, text: str, now: datetime) -> tuple[LogElsewhere, str]:
    """The contents of a log, and a note on a language model that reads its lines.

    Nothing waits for the model: it is asked in the background, if all teams of the person agreed.
    """
    found = read_log(text)
    forms = {one.digest: one for one in found.unknown_forms}
    if not forms:
        return found, ""
    kept = {row.digest: row for row in LogFormat.objects.filter(digest__in=forms)}
    shapes = {digest: shape_of(row.shape) for digest, row in kept.items() if row.shape}
    if shapes:
        return read_log(text, shapes), ""
    return found, _asked(reader, forms, kept, now)


def shape_of(places: Mapping[str, Any]) -> LogShape:
    """A shape as it is kept."""
    return LogShape(**places)


def stored(shape: LogShape) -> dict[str, int | None]:
    """A shape as it is to be kept."""
    return asdict(shape)


def is_any_form_awaited() -> bool:
    """Does a form wait for a language model?"""
    return LogFormat.objects.filter(model_state=ModelState.ASKED).exists()


def forget_old_forms(now: datetime) -> int:
    """Forget forms after 90 days.

    Models that never answered are given up, and the lines for them dropped.
    """
    silent = LogFormat.objects.filter(model_state__in=WAITING, asked_at__lt=now - ANSWERS_WITHIN)
    silent.update(model_state=ModelState.FAILED, model_note="It did not answer in time.", samples=[])
    return LogFormat.objects.filter(asked_at__lt=now - FORGOTTEN).delete()[0]


def _asked(
    reader: User, forms: Mapping[str, UnknownForm], kept: Mapping[str, LogFormat], now: datetime
) -> str:
    server = server_for(reader, "reader")
    if server is None:
        return ""
    tried = {digest for digest, row in kept.items() if not _is_due(row, now)}
    _ask(reader, [one for digest, one in forms.items() if digest not in tried], now)
    states = set(LogFormat.objects.filter(digest__in=forms).values_list("model_state", flat=True))
    if states & set(WAITING):
        return f"{server.host} is asked how the lines of this log count; read the log again in a minute."
    return f"{server.host} did not understand how the lines of this log count." if states else ""


def _is_due(row: LogFormat, now: datetime) -> bool:
    return row.model_state == ModelState.FAILED and row.asked_at < now - ASKED_AGAIN


def _ask(reader: User, forms: Collection[UnknownForm], now: datetime) -> None:
    waiting = LogFormat.objects.filter(Q(asked_by=reader) & Q(model_state__in=WAITING)).count()
    for one in list(forms)[: max(0, MOST_WAITING - waiting)]:
        LogFormat.objects.update_or_create(
            digest=one.digest,
            defaults={
                "samples": list(one.samples),
                "model_state": ModelState.ASKED,
                "model_note": "",
                "asked_by": reader,
                "asked_at": now,
                "answered_by": "",
            },
        )
