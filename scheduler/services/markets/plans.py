"""Plans of submitted jobs, kept so that what came about can be compared with them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta

from scheduler.models import Job, Market, MarketPlan
from scheduler.selectors.markets.plans import plans_of
from scheduler.selectors.markets.recordings import info_of

LATEST = timedelta(days=1)  # after its submission a job is not planned any more
SLICE = 20  # jobs a call


def keep_plans(*, now: datetime) -> int:
    """Keep the plans of jobs that have none yet; returns how many.

    A plan is made of what was recorded before the submission, so it does not matter when it is computed.
    """
    if not Market.objects.exists():
        return 0
    waiting = Job.objects.filter(
        spot=True, deadline_at__isnull=False, market_plan=None, submitted_at__gt=now - LATEST
    ).order_by("submitted_at")
    jobs = list(waiting[:SLICE])
    for job in jobs:
        found = plans_of(info_of(job))
        MarketPlan.objects.get_or_create(
            job=job,
            defaults={
                "market": found.market,
                "made_at": now,
                "outlooks": [asdict(one) for one in found.plans],
                "note": found.note[:300],
            },
        )
    return len(jobs)
