"""Changes that are made only while their object is as their author saw it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import Model


@contextmanager
def held(row: Model | None, name: str) -> Iterator[None]:
    """One transaction in which nobody else changes the row.

    Without a row nobody else comes into a block of the same name. SQLite lets one transaction write at a time
    anyway.
    """
    with transaction.atomic():
        if row is not None:
            rows = type(row)._base_manager.select_for_update(of=("self",), no_key=True)
            list(rows.filter(pk=row.pk).values_list("pk"))
        elif connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
        yield
