"""Jobs by the texts that their owners keep with them."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from scheduler.models import Job

# Django's own lookups take a key of digits for a place in a list, and have no containment on SQLite.
ONE_OF_PAIRS = (
    f"EXISTS (SELECT 1 FROM json_each({Job._meta.db_table}.metadata) AS pair"  # noqa: S608 - no value is in it
    " WHERE pair.key = %s AND pair.value = %s)"
)


def with_metadata(rows: QuerySet[Job], pairs: Mapping[str, str]) -> QuerySet[Job]:
    """The jobs among `rows` that have all these pairs."""
    if pairs and connection.vendor == "postgresql":
        return rows.filter(metadata__contains=dict(pairs))
    for pair in pairs.items():
        rows = rows.filter(RawSQL(ONE_OF_PAIRS, pair, output_field=BooleanField()))  # noqa: S611
    return rows


def without_metadata(rows: QuerySet[Job]) -> QuerySet[Job]:
    """Those that have no pairs at all."""
    return rows.filter(metadata={})
