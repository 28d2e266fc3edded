"""A job's events as the stretches of time that people think in: queued, running, paused and so on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from scheduler.models import JobEvent
from scheduler.states import TERMINAL, JobState, public_state


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpan:
    """A public state and how long it lasted, in seconds; None for one that time does not end."""

    state: str
    began_at: datetime
    duration_s: float | None
    reason: str


def stretches(events: Iterable[JobEvent], now: datetime) -> list[StateSpan]:
    """The public states in order; neighbours that look alike from outside are one."""
    changes: list[JobEvent] = []
    for event in events:
        if event.kind in ("state", "submitted") and (not changes or _shown(event) != _shown(changes[-1])):
            changes.append(event)
    ends = [following.at for following in changes[1:]] + [now]
    return [_stretch(event, end) for event, end in zip(changes, ends, strict=True)]


def _shown(event: JobEvent) -> str:
    return public_state(JobState(event.new), event.stop_for)


def _stretch(event: JobEvent, end: datetime) -> StateSpan:
    final = JobState(event.new) in TERMINAL
    lasted = None if final else max(0.0, (end - event.at).total_seconds())
    return StateSpan(state=_shown(event), began_at=event.at, duration_s=lasted, reason=event.reason)
