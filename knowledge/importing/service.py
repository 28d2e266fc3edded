"""Importing past executions from files.

An import is all or nothing, and the same file twice adds nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from knowledge.catalogue.portal_catalogue import FOLDER, portal_catalogue, with_folders
from knowledge.core.data.measurement import OWN, Measurement, digests
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.wording import counted
from knowledge.models import Execution, Status, config_values
from knowledge.selectors import exported, exported_under_other_digests
from portal.accounts.models import User
from portal.accounts.services import audit

BATCH = 500
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import."""

    rows: int
    added: int
    refused: int
    flagged: int
    unknown_models: tuple[str, ...]

    def __str__(self) -> str:
        unknown = f"; unknown models: {', '.join(self.unknown_models)}" if self.unknown_models else ""
        return (
            f"{counted(self.rows, 'row')} read, {self.added:,} added; breaking a launch rule:"
            f" {self.refused:,}; implausible and not used for training: {self.flagged:,}{unknown}"
        )


def import_history(
    *,
    text: str,
    source: str | None = None,
    now: datetime,
    provenance: Mapping[str, str] | None = None,
    actor: User | None = None,
) -> ImportReport:
    """Import a CSV text of the named source (found by its columns if None).

    `provenance` (where it comes from, its licence) goes to the audit record with the text's digest. Raises
    BadTable listing the wrong cells; then nothing is stored.
    """
    rows, catalogue = _parsed([text], source)
    # Everything that writes nothing comes first: nobody else can write to SQLite meanwhile.
    stored = _stored(rows, now)
    with transaction.atomic():
        added = _store(rows, stored)
        if provenance is not None:
            digest = hashlib.sha256(text.encode()).hexdigest()
            facts = {"sha256": digest, **provenance, "rows": len(rows), "added": added}
            name = provenance.get("dataset") or provenance.get("file", "")
            audit(action="history imported", actor=actor, now=now, target=name[:200], data=facts)
    return _report(rows, added, catalogue)


@transaction.atomic
def load_shipped(*, texts: Sequence[str], now: datetime) -> tuple[ImportReport, int]:
    """Import the CSVs that come with the project.

    Returns the report and how many older rows of these CSVs were removed. Older versions of the
    files may have said less about the same runs, which would count twice beside the new rows.
    """
    rows, catalogue = _parsed(texts, "csv")
    report = _report(rows, store_rows(rows, now), catalogue)
    wanted = set(digests(rows))
    there = Execution.objects.filter(source__in={row.source for row in rows}).values_list("pk", "row_digest")
    old = [key for key, digest in there if digest not in wanted]
    for start in range(0, len(old), BATCH):
        Execution.objects.filter(pk__in=old[start : start + BATCH]).delete()
    return report, len(old)


def _parsed(texts: Sequence[str], source: str | None) -> tuple[list[Measurement], Catalogue]:
    """Return the rows, and the catalogue by which they were read.

    It has models in folders, where rows name some.
    """
    catalogue = portal_catalogue()
    rows = [row for text in texts for row in registry.parse(text, catalogue, source)]
    whole = with_folders(catalogue, (row.config.model_name for row in rows))
    if whole is not catalogue:
        rows = [row for text in texts for row in registry.parse(text, whole, source)]
    return rows, whole


def _report(rows: Sequence[Measurement], added: int, catalogue: Catalogue) -> ImportReport:
    return ImportReport(
        rows=len(rows),
        added=added,
        refused=sum(row.status == Status.REFUSED for row in rows),
        flagged=sum(not row.learn for row in rows),
        unknown_models=tuple(
            sorted({row.config.model_name for row in rows if not catalogue.knows(row.config)})
        ),
    )


@transaction.atomic
def store_rows(rows: Sequence[Measurement], now: datetime) -> int:
    """Store rows that are not there yet; returns how many."""
    return _store(rows, _stored(rows, now))


def _stored(rows: Sequence[Measurement], now: datetime) -> list[Columns]:
    """The rows that would be stored."""
    shared = {"created_at": connection.ops.adapt_datetimefield_value(now)}
    named = zip(digests(rows), rows, strict=True)
    return [{"row_digest": name, **shared, **imported_values(row)} for name, row in named]


def _store(rows: Sequence[Measurement], stored: Sequence[Columns]) -> int:
    names = [columns["row_digest"] for columns in stored]
    there: set[str | None] = set()
    for start in range(0, len(names), BATCH):
        some = Execution.objects.filter(row_digest__in=names[start : start + BATCH])
        there.update(some.values_list("row_digest", flat=True))
    if any(row.source == OWN or row.config.model_name.startswith(FOLDER) for row in rows):
        # Own runs bear no digest, and folders lose their path: without this an export of this portal, in
        # either form, would bring them back doubled.
        there.update(digests(list(exported_under_other_digests())))
        there.update(digests(list(exported(own=True, paths=True))))
    new = [columns for columns in stored if columns["row_digest"] not in there]
    if new:
        _insert(new)
    return len(new)


def _insert(new: Sequence[Columns]) -> None:
    """Insert the rows in one statement.

    It takes a fifth of the time of `bulk_create`, which prepares every value by its field.
    """
    quote = connection.ops.quote_name
    table, names = quote(Execution._meta.db_table), ", ".join(map(quote, new[0]))
    marks = ", ".join(["%s"] * len(new[0]))
    json = connection.ops.adapt_json_value
    adapted = [{**columns, "settings": json(columns["settings"], None)} for columns in new]
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 -- names of ours alone
    with connection.cursor() as cursor:
        cursor.executemany(statement, [tuple(columns.values()) for columns in adapted])


def imported_values(row: Measurement) -> Columns:
    """The columns of an imported row, the same ones in the same order for all."""
    return {
        **config_values(row.config),
        "effective_batch_size": row.effective_batch_size,
        "config_hash": config_space.config_hash(row.config),
        "source": row.source,
        "origin": row.origin,
        "status": row.status,
        "tokens_per_second": row.tokens_per_second,
        "runtime_s": row.runtime_s if row.status == Status.OK else None,
        "startup_s": row.startup_s,
        "peak_memory_fraction": row.peak_memory_fraction,
        "peak_memory_bytes": _peak_bytes(row),
        "padded_tokens": row.padded_tokens,
        "learn": row.learn,
        "learn_validity": row.learn_validity,
        "flag_reason": row.flag_reason,
    }


def _peak_bytes(row: Measurement) -> int | None:
    """The peak in bytes, where the source states the memory that it is a share of."""
    if not row.peak_memory_fraction or not row.gpu_memory_bytes:
        return None
    return round(row.peak_memory_fraction * row.gpu_memory_bytes)
