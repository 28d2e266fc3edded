"""`migrate`, one at a time.

Hosts that start together would change the same tables.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db import connections

LOCK = 7_305_420_871  # of PostgreSQL, shared by all who migrate this database
LOOK_EVERY_S = 0.2


class Command(migrate.Command):
    help = f"{migrate.Command.help} A second one waits for the first."

    def handle(self, *args: Any, **options: Any) -> str | None:
        with alone(options["database"]):
            return super().handle(*args, **options)


@contextmanager
def alone(database: str) -> Iterator[None]:
    """Wait until nobody else migrates the database, and keep others waiting meanwhile.

    The lock ends with the process that holds it. It is asked for again and again, since statements that wait
    are ended by the server's limits.
    """
    connection = connections[database]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            while not _taken(cursor):
                time.sleep(LOOK_EVERY_S)
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    else:
        folder = Path(settings.DATA_DIR)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "migrate.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _taken(cursor: Any) -> bool:
    cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
    return bool(cursor.fetchone()[0])
