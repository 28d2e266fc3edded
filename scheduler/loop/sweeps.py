"""Housekeeping that no job waits for."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from knowledge.log_formats.kept import forget_old_forms, is_any_form_awaited
from knowledge.script_readings.trees import forget_old, is_any_awaited
from portal import disk
from scheduler import hints
from scheduler.models import JoinToken
from scheduler.services.decisions import forget_old_decisions
from scheduler.services.deletions import delete_expired_files
from scheduler.services.explanations.failures import is_any_unexplained
from scheduler.services.explanations.questions import forget_old_questions
from scheduler.services.files.parts import end_expired_uploads
from scheduler.services.files.quotas import HOLD_LIFETIME, forget_old_holds
from scheduler.services.files.storage import forget_cut_off
from scheduler.services.files.uploads import forget_deleted
from scheduler.services.forecasts.questions import forget_start_questions
from scheduler.services.idempotency import forget_old_keys
from scheduler.services.jobs.arrays import note_ended_arrays
from scheduler.services.jobs.kept_checkpoints import forget_checkpoints, jobs_with_checkpoints
from scheduler.services.jobs.plans import forget_old_plans
from scheduler.services.lockouts import release_jobs
from scheduler.services.quotas import tell_used_hours
from scheduler.services.simulations.request import ask_again
from scheduler.services.sync.warnings import warn_of_growing_jobs, warn_of_silent_jobs

log = logging.getLogger(__name__)


@hints.merged()
def sweep(now: datetime) -> None:
    """Forget what is too old, and look after jobs that need it.

    Old are idempotency keys, join tokens that expired a day ago, files and uploads past their time, and what
    killed processes were taking in or out. Simulations that are lost are looked after, the jobs of people who
    are locked out, and jobs that are silent or need ever more memory. Ends of arrays and GPU-hours that are
    nearly used up leave events.
    Decisions, plans and questions about starts are forgotten after their time, files of checkpoints once
    nothing goes on from them. The disk's reserve is made where there is none.
    """
    disk.keep_reserve()
    ask_again(now=now)
    if is_any_awaited() or is_any_form_awaited():
        hints.read_scripts()
    if is_any_unexplained(now):
        hints.explain_failures()
    release_jobs(now=now)
    warn_of_silent_jobs(now)
    warn_of_growing_jobs(now)
    note_ended_arrays(now=now)
    tell_used_hours(now=now)
    keys = forget_old_keys(now=now)
    tokens = JoinToken.objects.filter(expires_at__lt=now - timedelta(days=1)).delete()[0]
    holds = forget_old_holds(now)
    files = forget_cut_off(before=now - HOLD_LIFETIME)
    deleted = forget_deleted(now)
    decisions = forget_old_decisions(now)
    readings = forget_old(now)
    counted = {
        "keys": keys,
        "join_tokens": tokens,
        "upload_holds": holds,
        "cut_off_files": files,
        "expired_uploads": end_expired_uploads(now),
        "expired_files": delete_expired_files(now),
        "deleted_files": deleted,
        "checkpoint_files": forget_checkpoints(jobs=jobs_with_checkpoints(), now=now),
        "decisions": decisions,
        "script_readings": readings,
        "log_formats": forget_old_forms(now),
        "log_questions": forget_old_questions(now),
        "start_questions": forget_start_questions(now),
        "plans": forget_old_plans(now),
    }
    if any(counted.values()):
        log.info("swept", extra=counted)
