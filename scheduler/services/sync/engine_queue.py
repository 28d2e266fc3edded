"""The time of claims in the queue of their node's own engine.

It is neither start-up nor running time: an attempt lasts from its beginning on.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from scheduler.models import Claim, Job
from scheduler.services.jobs.terms.run_limits import stops_at
from trainer.message_reader import storable
from trainer.protocol import ClaimState, Phase

LONGEST_REASON = 300
BEGUN = (Phase.STARTING, Phase.RUNNING)


def note_queue(*, job: Job, claim: Claim, said: ClaimState, now: datetime) -> None:
    """Note that a claim came into such a queue, or left it to begin.

    To be called under the job's lock, before the reports that came with it: they tell of a time that counts
    from the beginning.
    """
    if said.phase is Phase.QUEUED:
        _wait(claim, said, now)
    elif claim.phase == Phase.QUEUED and said.phase in BEGUN:
        claim.began_at, claim.engine_reason = now, ""
        claim.save(update_fields=["began_at", "engine_reason"])
        if not claim.attempt.claims.filter(queued_at__isnull=False, began_at__isnull=True).exists():
            _begin(job, claim, now)


def _wait(claim: Claim, said: ClaimState, now: datetime) -> None:
    claim.queued_at, claim.engine_reason = claim.queued_at or now, storable(said.reason)[:LONGEST_REASON]
    claim.save(update_fields=["queued_at", "engine_reason"])
    claim.attempt.queued_s = None
    claim.attempt.save(update_fields=["queued_s"])


def _begin(job: Job, claim: Claim, now: datetime) -> None:
    """Let the attempt begin.

    All its work is left, and its time limit counts from here.
    """
    attempt = claim.attempt
    attempt.queued_s = max(0.0, (now - attempt.created_at).total_seconds())
    if attempt.remaining:
        attempt.progress = replace(attempt.remaining, heard_at=now.timestamp()).as_json()
    attempt.save(update_fields=["queued_s", "progress"])
    attempt.stops_at = stops_at(job, now)
    attempt.save(update_fields=["stops_at"])
