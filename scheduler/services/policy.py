"""Choosing the policy that runs the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import clean_parameters, values_of
from scheduler.errors import BadParameters, Conflict
from scheduler.models import Epoch, PolicyChoice
from scheduler.selectors.policy import current_choice, current_parameters, current_policy


@transaction.atomic
def choose_policy(
    *,
    actor: User,
    now: datetime,
    name: str | None = None,
    reason: str = "",
    parameters: Mapping[str, Any] | None = None,
    seen: int | None = None,
) -> PolicyChoice:
    """Let another policy decide from the next tick on; it begins without memory.

    `name`: None: the one that decides now. `parameters`: those of the policy that are to differ from its
    defaults; None: those that it has, of another policy none.
    `seen`: the number of the choice that the actor saw (`current_choice`), 0 for none; None does not ask.
    A tick under way is replaced, so that the memory of the policy before does not come back with its end.
    GPUs that are kept for jobs are free again with the next tick. Raises BadParameters for a name that is
    unknown or runs in the simulator only, and for parameters that it does not take; Conflict when someone
    else chose meanwhile.
    """
    _replace_the_tick(now)
    before, present = current_choice(), current_policy()
    if name is None:
        name = present
    if name not in POLICIES:
        raise BadParameters({"name": f"must be one of {', '.join(LIVE)}"})
    if name not in LIVE:
        raise BadParameters({"name": f"{name} runs in the simulator only; live are {', '.join(LIVE)}"})
    if parameters is None:
        parameters = current_parameters() if name == present else {}
    given = clean_parameters(POLICIES[name], parameters)
    if seen not in (None, before):
        raise Conflict("Someone else has changed the policy. Reload, check, and try again.")
    choice = PolicyChoice.objects.create(name=name, reason=reason, parameters=given, chosen_by=actor, at=now)
    data = {"reason": reason, "parameters": values_of(POLICIES[name], given)}
    audit(action="policy chosen", actor=actor, target=name, data=data, now=now)
    hints.tick()
    return choice


def _replace_the_tick(now: datetime) -> None:
    """Replace the present tick, so that one choice follows the other.

    The row also serves as a lock: it stays held until the transaction ends.
    """
    Epoch.objects.get_or_create(pk=1, defaults={"since": now})
    Epoch.objects.filter(pk=1).update(number=F("number") + 1, busy=False, memory={})
