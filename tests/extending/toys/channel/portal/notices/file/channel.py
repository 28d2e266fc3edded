"""Ends of jobs as lines of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from portal.events.models import Event
from portal.events.types import EventType


class FileChannel:
    description = "a line of `ended.txt` in the portal's data folder for each job that ends"
    types = (EventType.JOB_SUCCEEDED, EventType.JOB_FAILED, EventType.JOB_CANCELLED)

    def tell(self, events: Sequence[Event]) -> None:
        with (Path(settings.DATA_DIR) / "ended.txt").open("a") as file:
            file.writelines(f"{event.position} {event.subject} {event.words}\n" for event in events)
