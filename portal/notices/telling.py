"""Telling each channel the events that it has not told yet."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import Q

from portal import hints
from portal.events.models import Cursor
from portal.events.selectors import newest_position, stream
from portal.events.services import TELL
from portal.notices.channel import Channel
from portal.notices.table import CHANNELS

PIECE = 200  # events that a channel is given at a time
PATIENCE = timedelta(minutes=2)  # after which a worker that tells has died
log = logging.getLogger(__name__)


def tell_all(*, now: Callable[[], datetime]) -> None:
    """Let each channel tell what is new.

    One that fails holds up no other and tries again later.
    """
    for name, channel in CHANNELS.items():
        try:
            if _tell(name, channel, now()):
                hints.after_commit(TELL)
        except Exception:
            log.exception("a channel failed", extra={"channel": name})


def _tell(name: str, channel: Channel, now: datetime) -> bool:
    """Let a channel tell a piece; whether there may be more.

    Its cursor moves on once that is told: what a worker did not finish is told again by another. A channel
    that is new begins with what happens from now on.
    """
    newest = newest_position()
    cursor, _ = Cursor.objects.get_or_create(pk=f"notices {name}", defaults={"position": newest})
    if cursor.position >= newest:
        return False
    here = Cursor.objects.filter(pk=cursor.pk, position=cursor.position)
    if not here.filter(Q(busy_until=None) | Q(busy_until__lt=now)).update(busy_until=now + PATIENCE):
        return False
    piece = list(stream(after=cursor.position)[:PIECE])
    try:
        if wanted := [event for event in piece if event.type in channel.types]:
            channel.tell(wanted)
        cursor.position = max((event.position or 0 for event in piece), default=newest)
    finally:
        here.update(position=cursor.position, busy_until=None)
    return cursor.position < newest
