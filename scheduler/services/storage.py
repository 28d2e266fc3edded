"""Bytes to disk: counted, digested and synced, under a name that nothing reads until they are complete."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from scheduler.errors import FileTooLarge, StorageFull

CHUNK = 1 << 20


def write_new(stream: BinaryIO, path: Path, *, limit: int) -> tuple[str, int]:
    """Copy a stream to a file that must not exist yet; returns SHA-256 in hexadecimal and size in bytes.

    Raises FileTooLarge beyond `limit` bytes and StorageFull; the caller removes what was written.
    """
    with _telling_a_full_disk():
        return _write(stream, path, limit)


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
        if failed.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("The portal's disk is full; nothing was stored. Try again later.") from failed
        raise


def _write(stream: BinaryIO, path: Path, limit: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as out:
        while chunk := stream.read(CHUNK):
            size += len(chunk)
            if size > limit:
                raise FileTooLarge(f"The file is larger than {limit:,} bytes.")
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest(), size
