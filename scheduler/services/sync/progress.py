"""The work that an attempt has left.

It is written with each report that says something of it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from knowledge.catalogue.portal_catalogue import known_model
from knowledge.core.domain.types import Option
from scheduler.core.pace import measured_pace
from scheduler.core.remaining_time import Remaining, promised_remaining
from scheduler.models import Attempt


def begin(attempt: Attempt, promised: Option, *, total_steps: int, rows: float | None) -> None:
    """The trainer has counted: the promise again, for exact numbers of steps and rows."""
    _write(
        attempt,
        promised_remaining(
            promised,
            known_model(promised.config.model_name),
            began_at=_began_at(attempt),
            step=attempt.resume_step,
            total_steps=total_steps,
            rows=rows,
        ),
    )


def advance(
    attempt: Attempt,
    *,
    step: int,
    total_steps: int | None,
    step_s: float | None,
    saved_s: float | None,
    now: datetime,
) -> None:
    """Note that the steps up to `step` took `step_s` each.

    They are those since the last report; older agents do not say it.
    """
    remaining = _remaining(attempt)
    total = total_steps or remaining.work.total_steps
    if step_s:
        pace = measured_pace(remaining.pace, step=step, total=total, step_s=step_s, saved_s=saved_s)
    else:
        pace = replace(remaining.pace, step=step)
    work = replace(remaining.work, total_steps=total)
    _write(attempt, Remaining(work=work, pace=pace, heard_at=now.timestamp()))


def evaluated(attempt: Attempt, *, seconds: float, now: datetime) -> None:
    """An evaluation took so long; the next one will, too."""
    remaining = _remaining(attempt)
    pace = replace(remaining.pace, evaluated_s=seconds)
    _write(attempt, replace(remaining, pace=pace, heard_at=now.timestamp()))


def _remaining(attempt: Attempt) -> Remaining:
    """Return what is left as known so far.

    Attempts that an earlier release started have their promise alone.
    """
    if attempt.remaining:
        return attempt.remaining
    promised = attempt.promised
    model = known_model(promised.config.model_name)
    return promised_remaining(promised, model, began_at=_began_at(attempt), step=attempt.resume_step)


def _began_at(attempt: Attempt) -> float:
    return (attempt.begun_at or attempt.created_at).timestamp()


def _write(attempt: Attempt, remaining: Remaining) -> None:
    attempt.progress = remaining.as_json()
    attempt.save(update_fields=["progress"])
