"""The daily judgement of how well the promises of own runs held.

It is kept as a row, with an alarm in the log on drift.
"""

from __future__ import annotations

import logging
from datetime import datetime

from knowledge import selectors
from knowledge.core.evaluate import drift
from knowledge.models import TrackRecord

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
    record, created = TrackRecord.objects.get_or_create(day=day, defaults=values)
    if created and found.alarm:
        log.warning("predictions drift", extra={"alarm": found.alarm})
    return record if created else None
