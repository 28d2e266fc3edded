"""The task that gives events their positions."""

from __future__ import annotations

from celery import shared_task

from portal import hints
from portal.events import services


@shared_task(name="portal.events.tasks.give_positions")
def give_positions() -> None:
    """Give positions to the events that were committed since the last call."""
    with hints.merged():
        services.give_positions()
