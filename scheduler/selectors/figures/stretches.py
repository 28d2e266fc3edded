"""A job's events as stretches of time.

People think in these: queued, running, paused and so on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from portal.events.models import Event
from portal.events.types import MOVES, EventType
from scheduler.selectors.figures.times import lasted_s
from scheduler.states import TERMINAL, JobState, public_state

TELL_STATES = MOVES | {EventType.JOB_SUBMITTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpan:
    """A public state and how long it lasted, in seconds.

    None for one that time does not end. ongoing: it goes on, so that its duration grows.
    """

    state: str
    began_at: datetime
    duration_s: float | None
    reason: str
    ongoing: bool = False


def stretches(events: Iterable[Event], now: datetime) -> list[StateSpan]:
    """The public states in order; neighbours that look alike from outside are one."""
    changes: list[Event] = []
    for event in events:
        if event.type in TELL_STATES and (not changes or _shown(event) != _shown(changes[-1])):
            changes.append(event)
    ends = [following.at for following in changes[1:]] + [now]
    spans = [_stretch(event, end) for event, end in zip(changes, ends, strict=True)]
    return [*spans[:-1], *(replace(last, ongoing=last.duration_s is not None) for last in spans[-1:])]


def _shown(event: Event) -> str:
    return public_state(JobState(event.new), event.stop_for)


def _stretch(event: Event, end: datetime) -> StateSpan:
    state = _shown(event)  # cancelled already while it stops
    lasted = None if state in TERMINAL else lasted_s(event.at, end)
    return StateSpan(state=state, began_at=event.at, duration_s=lasted, reason=event.reason)
