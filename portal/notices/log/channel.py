"""Events as lines of the portal's log, for those who gather logs."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from portal.events.links import links
from portal.events.models import Event
from portal.events.types import EventType

log = logging.getLogger(__name__)


class LogChannel:
    """One line an event, at the level `info`.

    Reasons are left out, as they may name what is private.
    """

    description = "a line of the portal's log for each event, without its reason: for those who gather logs"
    types = frozenset(EventType)

    def tell(self, events: Sequence[Event]) -> None:
        for event in events:
            said = {"position": event.position, "type": event.type, "subject": event.subject}
            log.info("event", extra={**said, "happened_at": event.at.isoformat(), "page": links(event).page})
