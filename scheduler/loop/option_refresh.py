"""Options of waiting jobs, computed anew when nodes or predictor changed; never inside a tick."""

from __future__ import annotations

import logging

from django.db import transaction

from knowledge.core.domain.option_json import option_json
from knowledge.recommender import Recommender
from portal.clock import database_now
from scheduler import hints
from scheduler.models import Job
from scheduler.services.jobs import advice
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.states import JobState, WaitState

log = logging.getLogger(__name__)
SLICE = 50  # jobs a call, so that no task comes near the broker's visibility time-out


def refresh_options() -> int:
    """Refresh up to `SLICE` waiting jobs; returns how many. Asks for another call if more are left."""
    recommender = advice.current_recommender()
    digest = advice.options_digest(recommender)
    stale = advice.waiting_with_stale_options(digest)
    for job in stale[:SLICE]:
        _refresh(job, recommender, digest)
    if stale:
        hints.tick()
    if len(stale) > SLICE:
        hints.refresh_options()
    return len(stale[:SLICE])


def _refresh(seen: Job, recommender: Recommender, digest: str) -> None:
    options = advice.options_for(seen, recommender, database_now())
    with transaction.atomic():
        job = locked(seen.pk)
        if job.version != seen.version or job.state != JobState.QUEUED:
            return  # it moved meanwhile; the next call looks again
        if not options and job.less_memory_than is not None and recommender.inventory.pools:
            move_job(
                job=job,
                to=JobState.FAILED,
                now=database_now(),
                reason="Out of memory; no configuration that is predicted to need less is left.",
                failure_class="resource",
                failure_reason="It ran out of memory, and no configuration within what you fixed is predicted"
                " to need less. Free a parameter (batch size, length, method) or add nodes with more memory.",
            )
            return
        waited = {"wait_code": "", "wait_text": ""} if job.wait_code == WaitState.OPTIONS else {}
        stored = [option_json(option) for option in options]
        Job.objects.filter(pk=job.pk).update(
            options=stored,
            options_for=digest,
            promise=job.promise or (stored[0] if stored else None),
            **waited,
        )
