"""The daily judgement of how well the promises of own runs held.

It is kept as a row, with an alarm in the log on drift.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from knowledge import selectors
from knowledge.core.evaluate import drift
from knowledge.models import TrackRecord
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EventType, subject

log = logging.getLogger(__name__)


def watch(*, now: datetime) -> TrackRecord | None:
    """Judge the recent runs.

    Returns None if this day was judged already or nothing was promised yet.
    """
    day = now.date()
    if TrackRecord.objects.filter(day=day).exists():
        return None
    outcomes = [
        drift.PromiseOutcome(promise.tokens_per_second, measured)
        for promise, measured in selectors.promises(limit=2 * drift.RECENT)
        if promise.tokens_per_second.value > 0
    ]
    if not outcomes:
        return None
    found = drift.assess_drift(outcomes)
    values = {name: getattr(found, name) for name in ("runs", "coverage", "median_error", "alarm")}
    with transaction.atomic():
        judged, created = TrackRecord.objects.get_or_create(day=day, defaults=values)
        if created and judged.alarm:
            _tell(judged, now)
    return judged if created else None


def _tell(judged: TrackRecord, now: datetime) -> None:
    log.warning("predictions drift", extra={"alarm": judged.alarm})
    active = selectors.active_predictor()
    event = Event(
        subject=subject("predictor", active.number if active else 0),
        type=EventType.PREDICTOR_DRIFT,
        reason=judged.alarm,
        data={name: getattr(judged, name) for name in ("runs", "coverage", "median_error")},
        at=now,
    )
    record([event])
