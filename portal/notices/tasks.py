"""The task that lets channels tell what is new."""

from __future__ import annotations

from celery import shared_task

from portal import hints
from portal.clock import database_now
from portal.notices.telling import tell_all


@shared_task(name="portal.notices.tasks.tell")
def tell() -> None:
    """Tell each channel the events that it has not told yet; most calls find none."""
    with hints.merged():
        tell_all(now=database_now)
