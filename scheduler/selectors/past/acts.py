"""Holds, moves to the front and pauses of jobs of the past, for the simulator."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from portal.events.models import Event
from portal.events.types import EventType
from scheduler.simulator.settings import Act, ActKind

ACTS = {
    EventType.JOB_PAUSED: ActKind.PAUSE,
    EventType.JOB_RESUMED: ActKind.RESUME,
    EventType.JOB_HELD: ActKind.HOLD,
    EventType.JOB_RELEASED: ActKind.RELEASE,
    EventType.JOB_MOVED_TO_FRONT: ActKind.FRONT,
    EventType.JOB_MOVED_BACK: ActKind.BACK,
}


class _NotedAct(NamedTuple):
    """An act as its event tells it."""

    at: datetime
    job: str
    kind: ActKind


def past_acts(jobs: Collection[str], begin: datetime, end: datetime) -> tuple[Act, ...]:
    """The acts on these jobs, in the order of time, in s from the beginning.

    A pause is one from the moment at which the job has let its GPUs go. One that was not ended by resuming
    the job is left out: it was cancelled instead, and what it did until then is all of it.
    """
    found = [one for one in _noted(begin, end) if one.job in jobs]
    moves = [one for one in found if one.kind is ActKind.FRONT]
    places = {one: place / (len(moves) + 1) for place, one in enumerate(moves, start=1)}
    resumed = {one.job: one.at for one in found if one.kind is ActKind.RESUME}  # for the last time
    return tuple(
        Act((one.at - begin).total_seconds(), one.job, one.kind, places.get(one, 0.0))
        for one in found
        if one.kind is not ActKind.PAUSE or one.at <= resumed.get(one.job, begin)
    )


def _noted(begin: datetime, end: datetime) -> list[_NotedAct]:
    rows = Event.objects.filter(type__in=ACTS, at__gte=begin, at__lte=end).order_by("at", "pk")
    return [
        _NotedAct(at, job, ACTS[EventType(type)])
        for at, job, type in rows.values_list("at", "subject", "type")
    ]
