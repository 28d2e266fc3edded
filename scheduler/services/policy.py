"""Choosing the policy that runs the cluster."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F

from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.core.policies import LIVE, POLICIES
from scheduler.errors import BadParameters, Conflict
from scheduler.models import Epoch, PolicyChoice
from scheduler.selectors.policy import current_choice


@transaction.atomic
def choose_policy(
    *, name: str, actor: User, reason: str, now: datetime, seen: int | None = None
) -> PolicyChoice:
    """Let another policy decide from the next tick on; it begins without memory.

    `seen`: the number of the choice that the actor saw (`current_choice`), 0 for none; None does not ask.
    A tick under way is replaced, so that the memory of the policy before does not come back with its end.
    Raises BadParameters for a name that is unknown or needs preemption, which is not run live yet; Conflict
    when someone else chose meanwhile.
    """
    if name not in POLICIES:
        raise BadParameters({"name": f"must be one of {', '.join(LIVE)}"})
    if name not in LIVE:
        raise BadParameters(
            {"name": f"{name} runs in the simulator only, for now; live are {', '.join(LIVE)}"}
        )
    _replace_the_tick(now)
    before = current_choice()
    if seen not in (None, before):
        raise Conflict("Someone chose a policy meanwhile; look at it and decide again.")
    choice = PolicyChoice.objects.create(name=name, reason=reason, chosen_by=actor, at=now)
    audit(action="policy chosen", actor=actor, target=name, data={"reason": reason}, now=now)
    hints.tick()
    return choice


def _replace_the_tick(now: datetime) -> None:
    """Also the lock that lets one choice follow the other: the row stays held until the transaction ends."""
    Epoch.objects.get_or_create(pk=1, defaults={"since": now})
    Epoch.objects.filter(pk=1).update(number=F("number") + 1, busy=False, memory={})
