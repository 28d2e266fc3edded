"""The web server's own beat: the proof that nodes could have reached it."""

from __future__ import annotations

from datetime import datetime

from scheduler.models import WebBeat


def note_web_beat(*, now: datetime) -> None:
    """The web server has just answered. One statement, whichever process is the first."""
    WebBeat.objects.bulk_create(
        [WebBeat(pk=1, at=now)], update_conflicts=True, unique_fields=["id"], update_fields=["at"]
    )
