"""What a channel of notices is: one way in which events are told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from portal.events.models import Event
from portal.events.types import EventType


class Channel(Protocol):
    """One way of telling people or programs what happened.

    It tells the events of its types. Each is told once at least, in the order of positions: `tell` gets some
    of them at a time, and gets them again, later, if it raises or its worker is killed. So what it sends
    carries the event's position, by which a receiver knows what it has had already.
    """

    @property
    def description(self) -> str:
        """What it does, for docs/events.md."""

    @property
    def types(self) -> Collection[EventType]:
        """The types of events that it tells."""

    def tell(self, events: Sequence[Event]) -> None:
        """Tell these events; it may take half a minute and holds no transaction."""
