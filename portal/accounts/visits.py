"""Since when a person has been away: what the start page calls news."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.sessions.backends.base import SessionBase

from portal.accounts.models import User

# A look within this time belongs to the same visit, so that a reload does not wipe the news away.
SAME_VISIT = timedelta(minutes=30)
_KEY = "away_since"


def away_since(*, user: User, session: SessionBase, now: datetime) -> datetime | None:
    """Return when the person's visit before this one ended.

    None at the first visit. Notes that the person is here.
    """
    before = user.seen_at
    if _KEY not in session or (before and now - before > SAME_VISIT):
        session[_KEY] = before.isoformat() if before else ""
    if before is None or now - before > timedelta(minutes=1):
        User.objects.filter(pk=user.pk).update(seen_at=now)
    return datetime.fromisoformat(session[_KEY]) if session[_KEY] else None
