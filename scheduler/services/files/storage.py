"""Bytes to disk: counted, digested and synced.

They are under a name that nothing reads until they are complete.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from portal import disk
from scheduler.errors import FileTooLarge, StorageFull

CHUNK = 1 << 20
NOTHING_STORED = "The portal's disk is full; nothing was stored. Try again later."


def artifact_path(job_id: str, claim_id: str, path: str) -> Path:
    """Where an artifact lies."""
    return Path(settings.DATA_DIR) / "artifacts" / job_id / claim_id / path


def write_new(stream: BinaryIO, path: Path, *, limit: int) -> tuple[str, int]:
    """Copy a stream to a new file and return its SHA-256 and size.

    The file must not exist yet; the digest is hexadecimal, the size in bytes. Raises
    FileTooLarge beyond `limit` bytes and StorageFull; the caller removes what was written.
    """
    with _telling_a_full_disk():
        return _write(stream, path, limit)


@contextmanager
def arriving() -> Iterator[Path]:
    """Yield a new name for content on its way.

    Content that is not moved from there is removed. Raises StorageFull.
    """
    folder = _arrivals()
    make_folder(folder)
    path = folder / secrets.token_hex(8)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def forget_cut_off(before: datetime) -> int:
    """Remove content that nobody has added to since then, and return how many files.

    Its process was killed.
    """
    removed = 0
    for path in _arrivals().glob("*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before.timestamp():
                path.unlink()
                removed += 1
    return removed


def _arrivals() -> Path:
    return Path(settings.DATA_DIR) / "arriving"


def make_folder(folder: Path) -> None:
    """The folder and those above it, for the portal's own eyes.

    Raises StorageFull, and NotADirectoryError or FileExistsError where a file is in its way.
    """
    with _telling_a_full_disk():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


@contextmanager
def _telling_a_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as failed:
        if failed.errno in disk.NO_ROOM:
            raise StorageFull(NOTHING_STORED) from failed
        raise


def refuse_on_full_disk() -> None:
    """Raise StorageFull where the disk has no room for new work.

    The last of it belongs to reports of nodes and to people who make room.
    """
    if trouble := (now := disk.disk()).is_full and now.trouble:
        raise StorageFull(trouble)


def _write(stream: BinaryIO, path: Path, limit: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as out:
        while chunk := stream.read(CHUNK):
            refuse_on_full_disk()
            size += len(chunk)
            if size > limit:
                raise FileTooLarge(
                    f"What is sent is larger than {limit:,} bytes, the most at once; send less."
                )
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest(), size
