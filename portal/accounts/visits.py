"""Since when a person has been away: what the start page calls news."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from django.contrib.sessions.backends.base import SessionBase

from portal.accounts.models import User
from portal.events.selectors import newest_position

# A look within this time belongs to the same visit, so that a reload does not wipe the news away.
SAME_VISIT = timedelta(minutes=30)
_KEY = "last_visit"


class Away(NamedTuple):
    """The end of a visit, and how far the stream of events had come then."""

    since: datetime
    position: int


def last_visit(*, user: User, session: SessionBase, now: datetime) -> Away | None:
    """Return the end of the person's visit before this one.

    None at the first visit. Notes that the person is here.
    """
    before = user.seen_at
    if _KEY not in session or (before and now - before > SAME_VISIT):
        session[_KEY] = [before.isoformat(), user.seen_position] if before else None
    if before is None or now - before > timedelta(minutes=1):
        User.objects.filter(pk=user.pk).update(seen_at=now, seen_position=newest_position())
    if session[_KEY] is None:
        return None
    since, position = session[_KEY]
    return Away(datetime.fromisoformat(since), position)
