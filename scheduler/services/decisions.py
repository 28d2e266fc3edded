"""The end of decisions that were kept for long enough."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Sum

from scheduler.models import Decision, DecisionJob, OptionSet

AT_ONCE = 500  # rows; the next sweep goes on


def forget_old_decisions(now: datetime) -> int:
    """Delete the oldest decisions.

    They go beyond `DECISION_KEEP_DAYS` or `DECISION_KEEP_BYTES`, and with them the options that none of those
    left can name. Returns the number of decisions.
    """
    expired = now - timedelta(days=settings.DECISION_KEEP_DAYS)
    excess = _kept_bytes() - settings.DECISION_KEEP_BYTES
    gone: list[int] = []
    for pk, at, size in Decision.objects.order_by("id").values_list("pk", "at", "size")[:AT_ONCE]:
        if at >= expired and excess <= 0:
            break
        gone.append(pk)
        excess -= size
    if gone:
        DecisionJob.objects.filter(decision__in=gone).delete()
        Decision.objects.filter(pk__in=gone).delete()
    oldest = Decision.objects.order_by("id").values_list("at", flat=True).first() or now
    unused = OptionSet.objects.filter(used_on__lt=min(oldest, now).date())
    OptionSet.objects.filter(pk__in=list(unused.values_list("pk", flat=True)[:AT_ONCE])).delete()
    return len(gone)


def _kept_bytes() -> int:
    """Bytes of all that is kept of decisions."""
    sums = (rows.aggregate(bytes=Sum("size"))["bytes"] or 0 for rows in (Decision.objects, OptionSet.objects))
    return sum(sums)
