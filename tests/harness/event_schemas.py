"""Every event that a test writes is compared with the schema of its type."""

from __future__ import annotations

import json
from functools import cache

from django.core.serializers.json import DjangoJSONEncoder
from jsonschema import Draft202012Validator

from portal.events import services
from portal.events.models import Event
from portal.events.types import TYPES, EventType


@cache
def _validator(type: EventType) -> Draft202012Validator:
    return Draft202012Validator(TYPES[type].schema)


def wrong(event: Event) -> list[str]:
    """What is wrong with the data of an event."""
    data = json.loads(json.dumps(event.data, cls=DjangoJSONEncoder))
    return [f"{event}: {error.message}" for error in _validator(EventType(event.type)).iter_errors(data)]


def compare_all() -> None:
    """From now on writing an event whose data do not fit its type is an error."""
    insert = services.insert

    def checked(rows: list[Event]) -> None:
        assert not (found := [error for row in rows for error in wrong(row)]), found
        insert(rows)

    services.insert = checked
