"""How simulated data are told from real ones.

The mark is one line of the audit record, which nobody can delete.
"""

from __future__ import annotations

from datetime import datetime

from django.core.cache import cache
from django.http import HttpRequest

from portal.accounts.models import AuditEntry, User
from portal.accounts.services import audit

ACTION = "demo data created"
_KEY, _REMEMBERED_S = "demo-data", 60


def mark(*, actor: User, seed: int, now: datetime) -> None:
    """Have every page say from now on that its data are simulated."""
    audit(action=ACTION, actor=actor, data={"seed": seed}, now=now)
    cache.delete(_KEY)


def is_demo() -> bool:
    """Return whether this portal holds simulated data.

    The database is asked once a minute at most.
    """
    return bool(cache.get_or_set(_KEY, AuditEntry.objects.filter(action=ACTION).exists, _REMEMBERED_S))


def context(_: HttpRequest) -> dict[str, object]:
    """For templates: `demo_data`, asked for only where a page is shown."""
    return {"demo_data": is_demo}
