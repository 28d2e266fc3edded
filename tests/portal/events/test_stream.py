"""The stream of events: nothing is lost, however late a transaction commits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from portal import clock
from portal.clock import database_now
from portal.events import services
from portal.events.models import Event
from portal.events.selectors import newest_position, stream
from portal.events.services import give_positions, record
from portal.events.types import EventType
from tests.harness.threads import at_once


def happened(subject: str, number: int | None = None) -> Event:
    return Event(subject=subject, number=number, type=EventType.NODE_JOINED, at=database_now())


def read(after: int = 0) -> list[tuple[str, int | None]]:
    return list(stream(after=after).values_list("subject", "position"))


@contextmanager
def open_transaction(event: Event) -> Iterator[None]:
    """Another connection that has written an event and commits at the end of the block."""
    written, commit = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with transaction.atomic():
                record([event])
                written.set()
                assert commit.wait(60)
        finally:
            written.set()
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert written.wait(60)
        yield
    finally:
        commit.set()
        writer.join()


@pytest.fixture
def two_connections(transactional_db: None) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite lets one transaction write at a time")


@pytest.mark.postgresql
def test_a_transaction_that_commits_a_minute_late_loses_nothing(
    two_connections: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_transaction(happened("late")):
        record([happened("early")])
        assert give_positions() == 1
        assert read() == [("early", 1)]
        seen = newest_position()
        in_a_minute = clock.read() + timedelta(minutes=1)
        monkeypatch.setattr(clock, "read", lambda: in_a_minute)
        record([happened("later")])
        give_positions()
        assert read(after=seen) == [("later", 2)]
        seen = newest_position()
    ids = dict(Event.objects.values_list("subject", "id"))
    assert ids["late"] < ids["early"], "a reader that goes by ids would have passed it"
    assert give_positions() == 1
    assert read(after=seen) == [("late", 3)]
    assert read() == [("early", 1), ("later", 2), ("late", 3)]


@pytest.mark.django_db(transaction=True)
def test_two_positioners_at_once_give_each_position_once() -> None:
    record(happened(f"node-{n}") for n in range(50))
    given = at_once(*[give_positions] * 4)
    assert sum(given) == 50
    assert [position for _, position in read()] == list(range(1, 51))
    assert newest_position() == 50


@pytest.mark.postgresql
def test_writers_that_commit_in_any_order_leave_no_gap(two_connections: None) -> None:
    """A reader that follows sees every event once, in the order of positions."""
    seen: list[int | None] = []

    def follow() -> None:
        give_positions()
        seen.extend(position for _, position in read(after=seen[-1] or 0 if seen else 0))

    with open_transaction(happened("a")):
        with open_transaction(happened("b")):
            with open_transaction(happened("c")):
                record([happened("d")])
                follow()
            follow()
        follow()
    follow()
    assert seen == [1, 2, 3, 4]
    assert [subject for subject, _ in read()] == ["d", "c", "b", "a"]


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_leaves_no_event_and_no_gap() -> None:
    record([happened("first")])
    with transaction.atomic():
        record([happened("never")])
        transaction.set_rollback(True)
    record([happened("second")])
    give_positions()
    assert read() == [("first", 1), ("second", 2)]


@pytest.mark.django_db
def test_an_order_of_one_object_is_kept() -> None:
    record(happened("job", number) for number in (1, 2, 3))
    record([happened("other")])
    record([happened("job", 4)])
    give_positions()
    assert list(stream(after=0).filter(subject="job").values_list("number", flat=True)) == [1, 2, 3, 4]


@pytest.mark.django_db
def test_positions_are_given_in_pieces_and_the_rest_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    monkeypatch.setattr(services, "PIECE", 3)
    asked: list[object] = []
    monkeypatch.setattr(services.hints, "after_commit", asked.append)
    record(happened(f"node-{n}") for n in range(4))
    asked.clear()
    assert give_positions() == 3
    assert asked == [services.TELL, services.POSITIONS]
    asked.clear()
    assert give_positions() == 1
    assert asked == [services.TELL]
    assert [position for _, position in read()] == [1, 2, 3, 4]


@pytest.mark.django_db
def test_queries_do_not_grow_with_the_number_of_events() -> None:
    counts = []
    for many in (1, 50):  # SQLite takes 80 rows in one statement
        events = [happened(f"node-{n}") for n in range(many)]
        with CaptureQueriesContext(connection) as writing:
            record(events)
        with CaptureQueriesContext(connection) as positioning:
            assert give_positions() == many
        counts.append((len(writing), len(positioning)))
    assert counts[0][0] == counts[1][0] == 1
    assert counts[1][1] <= counts[0][1], "the first call makes the cursor"
    with CaptureQueriesContext(connection) as idle:
        assert give_positions() == 0
    assert len(idle) == 1, "a call that finds nothing opens no transaction"
