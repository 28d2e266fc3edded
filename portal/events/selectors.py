"""Reading the stream by position, and the history of one object."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.events.models import Cursor, Event


def stream(*, after: int) -> QuerySet[Event]:
    """The events after a position, in order; those without a position come in later."""
    return Event.objects.filter(position__gt=after).order_by("position")


def newest_position() -> int:
    """The last position that was given; 0 before the first."""
    return Cursor.objects.filter(pk=Cursor.GIVEN).values_list("position", flat=True).first() or 0


def history(subject: str) -> QuerySet[Event]:
    """All that happened to one object, oldest first.

    Events without a position are there as well: changes of one object wait for each other.
    """
    return Event.objects.filter(subject=subject).order_by("id")
