"""Channels are told every event once at least, in order."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest

from portal.clock import database_now
from portal.events.models import Cursor, Event
from portal.events.services import give_positions, record
from portal.events.types import EventType
from portal.logs import JsonFormatter
from portal.notices import table, telling
from portal.notices.telling import tell_all

pytestmark = pytest.mark.django_db


class Told:
    """A channel that remembers, and fails while it is told to."""

    description = "remembers"

    def __init__(self, *types: EventType) -> None:
        self.types = types or tuple(EventType)
        self.subjects: list[str] = []
        self.fails = False

    def tell(self, events: Sequence[Event]) -> None:
        if self.fails:
            raise OSError("The receiver is away.")
        self.subjects += [event.subject for event in events]


def happen(*subjects: str, type: EventType = EventType.NODE_JOINED) -> None:
    record(Event(subject=subject, type=type, at=database_now()) for subject in subjects)
    give_positions()


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch) -> dict[str, Told]:
    made = {"one": Told(), "lost": Told(EventType.NODE_LOST)}
    monkeypatch.setattr(telling, "CHANNELS", made)
    tell_all(now=database_now)
    return made


def test_each_channel_tells_the_events_of_its_types_once(channels: dict[str, Told]) -> None:
    happen("a", "b")
    happen("c", type=EventType.NODE_LOST)
    for _ in range(2):
        tell_all(now=database_now)
    assert channels["one"].subjects == ["a", "b", "c"]
    assert channels["lost"].subjects == ["c"]


def test_a_channel_begins_with_what_happens_from_now_on(monkeypatch: pytest.MonkeyPatch) -> None:
    happen("before")
    late = Told()
    monkeypatch.setattr(telling, "CHANNELS", {"late": late})
    tell_all(now=database_now)
    happen("after")
    tell_all(now=database_now)
    assert late.subjects == ["after"]


def test_a_channel_that_fails_tells_later_and_holds_up_no_other(channels: dict[str, Told]) -> None:
    channels["one"].fails = True
    happen("a", type=EventType.NODE_LOST)
    tell_all(now=database_now)
    assert channels["lost"].subjects == ["a"]
    channels["one"].fails = False
    happen("b")
    tell_all(now=database_now)
    assert channels["one"].subjects == ["a", "b"]


def test_pieces_are_told_in_order(channels: dict[str, Told], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "PIECE", 2)
    happen(*"abcde")
    for _ in range(3):
        tell_all(now=database_now)
    assert channels["one"].subjects == list("abcde")


def test_one_worker_tells_at_a_time_and_one_that_died_is_replaced(channels: dict[str, Told]) -> None:
    happen("a")
    now = database_now()
    Cursor.objects.filter(pk="notices one").update(busy_until=now + telling.PATIENCE)
    tell_all(now=lambda: now)
    assert channels["one"].subjects == []
    tell_all(now=lambda: now + telling.PATIENCE + timedelta(seconds=1))
    assert channels["one"].subjects == ["a"]


def test_the_log_has_a_line_for_each_event_without_its_reason() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    log = logging.getLogger("portal.notices.log.channel")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    reason = "It declined a start: /home/cornelia/data is gone."
    event = Event(subject="node-1", type=EventType.NODE_DECLINED, reason=reason, at=database_now())
    try:
        tell_all(now=database_now)
        record([event])
        give_positions()
        tell_all(now=database_now)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    (line,) = map(json.loads, written.getvalue().splitlines())
    assert (line["type"], line["subject"], line["position"]) == ("node.declined", "node-1", 1)
    assert line["page"] == "/nodes/node-1/"
    assert "cornelia" not in written.getvalue()
    assert "log" in table.CHANNELS
