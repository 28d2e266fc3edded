"""Fair shares of people and teams: their weights, and what they used.

Use is charged when GPUs are released, and is kept in rows, so that no choice of a policy forgets it.
"""

from __future__ import annotations

import math
from datetime import datetime

from django.db import transaction

from portal.accounts.models import Team, User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from scheduler import hints
from scheduler.core.ordering.decayed_use import faded, use_of
from scheduler.errors import BadParameters
from scheduler.models import FairShare, Job

LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0


@transaction.atomic
def set_weight(*, of: User | Team, weight: float, actor: User, now: datetime) -> None:
    """Let a person or a team weigh so much from the next decision on.

    Raises BadParameters, NotAllowed.
    """
    require_admin(actor)
    if not (math.isfinite(weight) and LEAST_WEIGHT <= weight <= MOST_WEIGHT):
        raise BadParameters(
            {"weight": f"must be between {LEAST_WEIGHT:g} and {MOST_WEIGHT:,.0f}; 1 is usual"}
        )
    share = _held(now, **({"team_id": of.pk} if isinstance(of, Team) else {"user_id": of.pk}))
    share.weight = weight
    share.save(update_fields=["weight"])
    target = f"team {of.pk}" if isinstance(of, Team) else f"user {of.get_username()}"
    audit(action="fair share set", actor=actor, target=target, data={"weight": weight}, now=now)
    hints.tick()


def charge(*, job: Job, gpus: int, begun_at: datetime, now: datetime) -> None:
    """Charge GPUs that a job held until now, within the caller's transaction."""
    used = use_of(gpus, (now - begun_at).total_seconds())
    charged: list[dict[str, int]] = [{"user_id": job.owner_id}]
    if job.team_id:
        charged.append({"team_id": job.team_id})  # always after the person, so that nobody waits in a circle
    for account in charged:
        share = _held(now, **account)
        share.used_gpu_s = faded(share.used_gpu_s, (now - share.at).total_seconds()) + used
        share.at = max(now, share.at)
        share.save(update_fields=["used_gpu_s", "at"])


def _held(now: datetime, **account: int) -> FairShare:
    """The row of a person or a team, made if need be, held until the transaction ends."""
    rows = FairShare.objects.select_for_update(of=("self",))
    return rows.get_or_create(**account, defaults={"at": now})[0]
