"""Importing past executions that an administrator uploads; larger histories go through the command."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import BinaryIO

from django.db import transaction

from knowledge.core.sources.table import BadTable
from knowledge.importing import ImportReport, import_history
from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.errors import FileTooLarge

LARGEST = 2_000_000  # bytes: some 15,000 rows and ten seconds, the most that a request should take


def import_upload(
    *, stream: BinaryIO, filename: str, source: str | None = None, actor: User, now: datetime
) -> ImportReport:
    """Import a CSV file as `manage.py import_history` does: all rows, or none with the wrong cells.

    source: one of `SOURCES`; None: found by the columns. Raises BadTable and FileTooLarge.
    """
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        told = f"The file is larger than {LARGEST // 1_000_000} MB; import it with manage.py import_history."
        raise FileTooLarge(told)
    try:
        text = content.decode()
    except UnicodeDecodeError as wrong:
        raise BadTable([(1, "file", "is not UTF-8 text; save it as CSV in UTF-8")]) from wrong
    with transaction.atomic():
        report = import_history(text=text, source=source, now=now)
        digest = hashlib.sha256(content).hexdigest()
        facts = {"file": filename[:200], "sha256": digest, "rows": report.rows, "added": report.added}
        audit(action="history.imported", actor=actor, target=filename[:200], data=facts, now=now)
        hints.learn()
    return report
