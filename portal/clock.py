"""The one clock of the portal: the database's.

States are stamped with it, and leases, deadlines and ages are judged by it. The clocks of two
hosts may differ by minutes; there is one database.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection


def database_now() -> datetime:
    """The database's present time, aware, in UTC. One tiny query."""
    return read()


def read() -> datetime:
    """Read the time from the database.

    Other code calls `database_now`, so that a test replaces the clock for all of it here.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')")
            return datetime.fromisoformat(cursor.fetchone()[0]).replace(tzinfo=UTC)
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
        return moment.astimezone(UTC)
