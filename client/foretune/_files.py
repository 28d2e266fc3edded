"""Files of this machine: what is sent of them, and where downloads go."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ._errors import BrokenDownload

PART_BYTES = 64 * 2**20  # as the portal takes parts
CHUNK_BYTES = 2**20


def digest_of(opened: BinaryIO) -> str:
    """SHA-256 of the whole file, hexadecimal."""
    opened.seek(0)
    digest = hashlib.sha256()
    while chunk := opened.read(CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def size_of(opened: BinaryIO) -> int:
    return opened.seek(0, os.SEEK_END)


def part_of(opened: BinaryIO, start: int) -> bytes:
    opened.seek(start)
    return opened.read(PART_BYTES)


def place_of(folder: Path, path: str) -> Path:
    """Where an artifact goes: inside of `folder`, whatever its path says.

    Raises BrokenDownload.
    """
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or path.startswith("/") or "\\" in path or ":" in path:
        raise BrokenDownload(f"The portal names a file outside of the folder: {path}")
    return folder.joinpath(*parts)


def holds(path: Path, sha256: str) -> bool:
    """Is this file there, whole?"""
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        return digest_of(opened) == sha256
