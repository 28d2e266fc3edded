"""Options of waiting jobs, computed anew when nodes or predictor changed.

This never happens inside a tick.
"""

from __future__ import annotations

import logging

from django.db import transaction

from knowledge.core.domain.option_json import option_json
from knowledge.core.recommend.objectives import affordable
from knowledge.recommendations.recommender import Recommender
from portal.clock import database_now
from scheduler import hints
from scheduler.models import Job
from scheduler.selectors.cluster.inventory import inventory
from scheduler.services.jobs import recommend
from scheduler.services.jobs.transitions import locked, move_job
from scheduler.states import JobState, WaitState

log = logging.getLogger(__name__)
SLICE = 50  # jobs a call, so that no task comes near the broker's visibility time-out


def refresh_options() -> int:
    """Refresh up to `SLICE` waiting jobs of each kind and return how many.

    The kinds are those that may use spot nodes and those that may not. Another call is asked for if more are
    left.
    """
    done = 0
    for spot in (False, True):
        if spot and not Job.objects.filter(state=JobState.QUEUED, spot=True).exists():
            continue
        recommender = recommend.current_recommender(spot=spot)
        digest = recommend.options_digest(recommender)
        stale = recommend.waiting_with_stale_options(digest, spot=spot)
        for job in stale[:SLICE]:
            _refresh(job, recommender, digest)
        if stale:
            hints.tick()
        if len(stale) > SLICE:
            hints.refresh_options()
        done += len(stale[:SLICE])
    return done


def _refresh(seen: Job, recommender: Recommender, digest: str) -> None:
    options = recommend.options_for(seen, recommender, database_now())
    smaller_anywhere = bool(options) or _may_come_back(seen)
    with transaction.atomic():
        job = locked(seen.pk)
        if job.version != seen.version or job.state != JobState.QUEUED:
            return  # it moved meanwhile; the next call looks again
        if not options and job.less_memory_than is not None and not smaller_anywhere:
            move_job(
                job=job,
                to=JobState.FAILED,
                now=database_now(),
                reason="Out of memory; no configuration that is predicted to need less is left.",
                failure_class="resource",
                failure_reason="It ran out of memory, and no configuration with the values you set is"
                " predicted to need less. Leave a parameter open (batch size, length, tuning) or add"
                " nodes with more memory.",
            )
            return
        waited = {"wait_code": "", "wait_text": ""} if job.wait_code == WaitState.OPTIONS else {}
        stored = [option_json(option) for option in options]
        agreed = affordable(options, job.budget)  # nobody has agreed to a cost beyond the budget
        Job.objects.filter(pk=job.pk).update(
            options=stored,
            options_for=digest,
            promise=job.promise or (option_json(agreed[0]) if agreed else None),
            **waited,
        )


def _may_come_back(job: Job) -> bool:
    """Could a job that ran out of memory run once nodes come back?

    They are those that are out of service now. It may also if there is no node at all.
    """
    if job.less_memory_than is None:
        return True
    everything = inventory(in_service=False, spot=job.spot)
    anywhere = Recommender.of(everything)
    return not everything.pools or bool(recommend.options_for(job, anywhere, database_now()))
