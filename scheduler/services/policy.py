"""Choosing the policy that runs the cluster."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.core.policies import LIVE, POLICIES
from scheduler.errors import BadParameters
from scheduler.models import Epoch, PolicyChoice


@transaction.atomic
def choose_policy(*, name: str, actor: User, reason: str, now: datetime) -> PolicyChoice:
    """Let another policy decide from the next tick on; it begins without memory.

    Raises BadParameters for a name that is unknown or needs preemption, which is not run live yet.
    """
    if name not in POLICIES:
        raise BadParameters({"name": f"must be one of {', '.join(LIVE)}"})
    if name not in LIVE:
        raise BadParameters(
            {"name": f"{name} runs in the simulator only, for now; live are {', '.join(LIVE)}"}
        )
    choice = PolicyChoice.objects.create(name=name, reason=reason, chosen_by=actor, at=now)
    Epoch.objects.update(memory={})
    audit(action="policy chosen", actor=actor, target=name, data={"reason": reason}, now=now)
    hints.tick()
    return choice
