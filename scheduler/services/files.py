"""Uploads of training data: checked while they stream in, stored by digest."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from portal.accounts.models import Team, User
from scheduler.models import DatasetFile
from scheduler.services.checking import check
from scheduler.services.idempotency import Creation, unkeyed
from scheduler.services.quotas import require_room
from scheduler.services.storage import arriving, make_folder, write_new


def path_of(sha256: str) -> Path:
    """Where content with this digest lies."""
    return Path(settings.DATA_DIR) / "files" / sha256[:2] / sha256


def store_file(
    *,
    owner: User,
    stream: BinaryIO,
    filename: str,
    now: datetime,
    team: Team | None = None,
    creation: Creation = unkeyed,
) -> DatasetFile:
    """Store an upload of training data. Raises BadFile with the first wrong lines, FileTooLarge,
    OverQuota, TooBusy.

    The content is written under a generated name and moved into place when it is complete and checked, so
    that a lost connection leaves neither a row nor a file. `creation` opens the transaction of the row.
    """
    with arriving() as partial:
        digest, size = write_new(stream, partial, limit=settings.MAX_UPLOAD_BYTES)
        facts = check(partial)
        with creation() as note:
            require_room(owner=owner, sha256=digest, size=size)
            _keep(partial, path_of(digest))
            file = DatasetFile.objects.create(
                owner=owner,
                team=team,
                filename=_printable(filename),
                sha256=digest,
                bytes=size,
                rows=facts.rows,
                format=facts.format,
                lengths=[list(pair) for pair in facts.lengths],
                unused_fields=list(facts.unused),
                created_at=now,
            )
            note(file)
    return file


def _keep(partial: Path, target: Path) -> None:
    make_folder(target.parent)
    partial.replace(target)


def _printable(filename: str) -> str:
    """The base name without control characters: it is shown, never used as a path."""
    name = filename.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(c for c in name if c.isprintable())[:255] or "unnamed.jsonl"
