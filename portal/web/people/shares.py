"""The fair share of a team or a person, on their pages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from portal.accounts.models import Team, User
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import NumberField
from scheduler.selectors.cluster.fair_shares import share_of
from scheduler.services.fair_shares import LEAST_WEIGHT, MOST_WEIGHT, set_weight


class ShareForm(StyledForm):
    prefix_id = "share"
    weight = NumberField(min_value=LEAST_WEIGHT, max_value=MOST_WEIGHT, label="Weight; 1 is usual")


def share_parts(account: Team | User, now: datetime, form: ShareForm | None = None) -> dict[str, Any]:
    """The share of a team or person, with a form that sets its weight."""
    share = share_of(account, now)
    return {
        "share": share,
        "share_used_hours": share.used_gpu_s / 3600,
        "share_form": form or ShareForm(initial={"weight": share.weight}),
    }


def set_team_weight(*, team: Team, actor: User, now: datetime, weight: float) -> None:
    set_weight(of=team, weight=weight, actor=actor, now=now)
