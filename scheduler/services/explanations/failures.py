"""Why attempts failed, read from their logs in the background and kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from scheduler.models import Attempt, Failure
from scheduler.selectors.analysis.failures import explained_attempt
from scheduler.states import BAD_OUTCOMES, Outcome

MOST_AT_ONCE = 50
SETTLED = timedelta(seconds=2)  # the last lines of a log arrive with the end
LOOKED_BACK = timedelta(days=7)


def is_any_unexplained(now: datetime) -> bool:
    """Did an attempt fail of which no cause is kept yet?"""
    return _unexplained(now).exists()


def keep_causes(now: datetime) -> int:
    """Keep the causes of failures that are new; returns how many."""
    found = list(_unexplained(now).select_related("job")[:MOST_AT_ONCE])
    for attempt in found:
        explained = explained_attempt(attempt)
        Failure.objects.get_or_create(
            attempt=attempt,
            defaults={
                "cause": explained.cause.name,
                "failure_class": explained.cause.blame.value,
                "sentence": explained.sentence[:300],
                "lines": [line._asdict() for line in explained.lines],
                "at": now,
            },
        )
    return len(found)


def _unexplained(now: datetime) -> QuerySet[Attempt]:
    ended = Attempt.objects.filter(ended_at__gt=now - LOOKED_BACK, ended_at__lte=now - SETTLED)
    # These say why themselves, and no log tells more.
    known = (Outcome.DECLINED, Outcome.CHECKPOINT, Outcome.DATA)
    bad = [outcome for outcome in BAD_OUTCOMES if outcome not in known]
    return ended.filter(outcome__in=bad, failure__isnull=True).order_by("ended_at")
