"""Writing events, and giving them their positions: the only code that does."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection, transaction

from portal import hints
from portal.events.models import Cursor, Event

PIECE = 5000  # events that get positions in one transaction
POSITIONS = hints.Hint("portal.events.tasks.give_positions", "control")
TELL = hints.Hint("portal.notices.tasks.tell", "work")


def record(events: Iterable[Event]) -> None:
    """Write events in the caller's transaction, that of the change.

    It is one query for any number, but for the rows that one insertion holds.
    """
    if rows := list(events):
        insert(rows)
        hints.after_commit(POSITIONS)


def insert(rows: list[Event]) -> None:
    """Tests compare each row with the schema of its type here."""
    Event.objects.bulk_create(rows)


def give_positions() -> int:
    """Give committed events their positions, in the order of their ids.

    One call at a time does so, and its positions are committed before the next one's are given: a reader
    that has seen a position has seen all before it. Returns how many were given; the rest waits for the next
    call, which is asked for.
    """
    # Mostly there are none, and on SQLite a transaction keeps all other writers waiting.
    return _give() if Event.objects.filter(position=None).exists() else 0


@transaction.atomic
def _give() -> int:
    given, _ = Cursor.objects.get_or_create(pk=Cursor.GIVEN)
    given = Cursor.objects.select_for_update().get(pk=given.pk)
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, [given.position, PIECE])
        count: int = cursor.rowcount
    if count:
        Cursor.objects.filter(pk=given.pk).update(position=given.position + count)
        hints.after_commit(TELL)
    if count == PIECE:
        hints.after_commit(POSITIONS)
    return count


# One statement for all rows, for SQLite and PostgreSQL; the ORM cannot update from numbered rows.
_NEXT = """
UPDATE events_event SET position = numbered.place + %s
FROM (
    SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM events_event WHERE position IS NULL
    ORDER BY id LIMIT %s
) AS numbered
WHERE events_event.id = numbered.id
"""
