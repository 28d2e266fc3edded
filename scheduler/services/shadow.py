"""Putting a policy on probation, and ending it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from portal.accounts.models import User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.policies.parameters import clean_parameters, values_of
from scheduler.errors import BadParameters, Conflict
from scheduler.models import ShadowPolicy


def start_shadow(
    *, name: str, actor: User, now: datetime, reason: str = "", parameters: Mapping[str, Any] | None = None
) -> ShadowPolicy:
    """Let another policy decide in the shadow; nothing of it is carried out.

    Raises BadParameters naming the field, Conflict while another one is on probation, NotAllowed.
    """
    require_admin(actor)
    if name not in LIVE:
        why = "runs in the simulator only" if name in POLICIES else "is no policy"
        raise BadParameters({"name": f"{name} {why}; on probation may be {', '.join(LIVE)}"})
    given = clean_parameters(POLICIES[name], parameters or {})
    try:
        with transaction.atomic():
            made = ShadowPolicy.objects.create(
                policy=name, parameters=given, reason=reason, started_by=actor, started_at=now, at=now
            )
            data = {"reason": reason, "parameters": values_of(POLICIES[name], given)}
            audit(action="policy put on probation", actor=actor, target=name, data=data, now=now)
    except IntegrityError as taken:
        raise Conflict("Another policy is on probation. End its probation first.") from taken
    return made


@transaction.atomic
def end_shadow(*, actor: User, now: datetime) -> None:
    """End the probation; its figures stay. Nothing happens if there is none.

    Raises NotAllowed.
    """
    require_admin(actor)
    ended = ShadowPolicy.objects.select_for_update().filter(open=True).first()
    if ended is None:
        return
    ended.open, ended.ended_at, ended.world = False, now, None
    ended.save(update_fields=["open", "ended_at", "world"])
    audit(action="probation ended", actor=actor, target=ended.policy, data={}, now=now)
