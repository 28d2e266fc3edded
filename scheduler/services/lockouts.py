"""Locking a person out.

Their access ends in one transaction; the work that they left running is ended right after it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime

from django.db import OperationalError, transaction
from django.db.models import Case, QuerySet, When

from portal.accounts import people
from portal.accounts.models import User
from portal.accounts.services import audit, revoke_tokens
from portal.events.types import EventType
from scheduler.errors import IllegalTransition, StaleJob
from scheduler.models import Job, JoinToken
from scheduler.selectors.cluster.calibrations import open_calibrations
from scheduler.services.calibration.request import cancel_calibration
from scheduler.services.jobs.transitions import locked, note_job
from scheduler.services.jobs.verbs import cancel_job
from scheduler.states import LIVE, TERMINAL, StopFor

log = logging.getLogger(__name__)

AT_ONCE = 100  # jobs; the sweep takes care of those beyond


def lock_out(*, user: User, actor: User, now: datetime, successor: User | None = None) -> User:
    """Lock a person out, whatever runs.

    Sessions, API tokens and the join tokens that they made end at once. Their jobs that have
    not ended are cancelled, or go to `successor`. A job that cannot be changed now, because its
    row is held, is left to the next sweep. Raises NotAllowed, Refused.
    """
    with transaction.atomic():
        user = people.lock_out(user=user, actor=actor, now=now, successor=successor)
        _expire_join_tokens(user, actor, now)
    for calibration in open_calibrations().filter(outcome="", requested_by=user):
        with suppress(IllegalTransition):  # it was ending of itself
            cancel_calibration(calibration=calibration, actor=actor, now=now)
    release_jobs(now=now, of=user, actor=actor)
    return user


@transaction.atomic
def reset_password(*, user: User, actor: User, now: datetime, revoke: bool) -> str:
    """Set a new password, shown only now, and end the person's sessions.

    With `revoke` their tokens end too. Raises NotAllowed.
    """
    password = people.reset_password(user=user, actor=actor, now=now)
    if revoke:
        revoke_all(user=user, actor=actor, now=now)
    return password


@transaction.atomic
def revoke_all(*, user: User, actor: User, now: datetime) -> None:
    """End a person's API tokens and the join tokens that they made."""
    revoke_tokens(owner=user, actor=actor, now=now)
    _expire_join_tokens(user, actor, now)


def _expire_join_tokens(user: User, actor: User, now: datetime) -> None:
    ended = JoinToken.objects.filter(created_by=user, expires_at__gt=now).update(expires_at=now)
    if ended:
        target = f"user {user.get_username()}"
        audit(action="join tokens revoked", actor=actor, target=target, data={"tokens": ended}, now=now)


def release_jobs(*, now: datetime, of: User | None = None, actor: User | None = None) -> int:
    """Cancel or hand over jobs of people who are locked out, and return how many.

    Jobs with GPUs go first. Each changes in a transaction of its own, a limited number in
    one call. A job that was being submitted while its owner was locked out is found by a later
    call.
    """
    return sum(_released(job, actor, now) for job in _left_behind(of)[:AT_ONCE])


def _left_behind(of: User | None) -> QuerySet[Job]:
    jobs = Job.objects.filter(owner__is_active=False).exclude(state__in=TERMINAL)
    jobs = jobs.exclude(stop_for=StopFor.CANCEL).select_related("owner__successor")
    jobs = jobs if of is None else jobs.filter(owner=of)
    return jobs.order_by(Case(When(state__in=LIVE, then=0), default=1), "pk")


def _released(job: Job, actor: User | None, now: datetime) -> bool:
    """Cancel or hand over a job; False if it ended, changed or stayed locked.

    It stays locked if its row is held for too long.
    """
    successor = job.owner.successor
    try:
        if successor is not None and successor.is_active:
            _hand_over(job, successor, actor, now)
        else:
            cancel_job(job=job, actor=actor, now=now, reason="Its owner's account was deactivated.")
    except (IllegalTransition, StaleJob):
        return False
    except OperationalError as held:
        log.warning(
            "a job of somebody locked out is left to the sweep", extra={"job": job.pk, "reason": str(held)}
        )
        return False
    return True


@transaction.atomic
def _hand_over(job: Job, successor: User, actor: User | None, now: datetime) -> None:
    reason = "Handed over because its owner's account was deactivated."
    note_job(
        job=locked(job.pk),
        event=EventType.JOB_HANDED_OVER,
        now=now,
        reason=reason,
        actor=actor,
        owner=successor,
    )
