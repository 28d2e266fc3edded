"""Import of past executions that an administrator uploads.

Larger histories go through the command.
"""

from __future__ import annotations

from datetime import datetime
from typing import BinaryIO

from knowledge.core.data.sources.table import BadTable
from knowledge.importing.service import ImportReport, import_history
from portal.accounts.models import User
from scheduler import hints
from scheduler.errors import FileTooLarge

LARGEST = 20_000_000  # bytes: the largest published history has 17 million, in 30,920 rows
MOST_LINES = 40_000  # some seconds, in the last of which SQLite lets nobody else write


def import_upload(
    *, stream: BinaryIO, filename: str, source: str | None = None, actor: User, now: datetime
) -> ImportReport:
    """Import a CSV file as `manage.py import_history` does.

    All rows are imported, or none and the wrong cells are reported.
    source: one of `SOURCES`; None: found by the columns.
    Raises BadTable and FileTooLarge.
    """
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise _too_large(f"larger than {LARGEST // 1_000_000} MB")
    if content.count(b"\n") > MOST_LINES:
        raise _too_large(f"longer than {MOST_LINES:,} lines")
    try:
        text = content.decode()
    except UnicodeDecodeError as wrong:
        raise BadTable([(1, "file", "is not UTF-8 text; save it as CSV in UTF-8")]) from wrong
    report = import_history(
        text=text, source=source, now=now, provenance={"file": filename[:200]}, actor=actor
    )
    hints.learn()
    return report


def _too_large(how: str) -> FileTooLarge:
    return FileTooLarge(
        f"The file is {how}; import it with manage.py import_history FILE on the portal's machine."
    )
