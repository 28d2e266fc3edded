"""Making an archive.

It is one tar file with the database, the folders, and the manifest at its end.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from portal.ops.backup import databases
from portal.ops.backup.errors import NoFolder, NotOurs
from portal.ops.backup.manifest import DATABASE, FOLDERS, NAME, Member, present


class _Digested:
    """A file whose SHA-256 is known once it has been read."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self.file.read(size)
        self.digest.update(piece)
        return piece


def write_archive(target: Path, *, now: datetime) -> Path:
    """Write an archive to `target`, or into it if it is a folder; return its path.

    In a folder the file is named by the time. The database comes first: files are never changed and
    only removed with their rows, so the files that it names are there, except for those deleted
    meanwhile. Raises ArchiveError, OSError; then there is no file.
    """
    path = target / f"foretune-{now:%Y%m%d-%H%M%S}.tar" if target.is_dir() else target
    if not path.parent.is_dir():
        raise NoFolder(f"There is no folder {path.parent}: make it first, or name another.")
    if path.exists() and not _is_archive(path):
        raise NotOurs(f"{path} exists and is no backup: name another file, or a folder.")
    # Two backups at once do not meet, and the file is its owner's alone: password hashes, everybody's data.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, now)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _is_archive(path: Path) -> bool:
    """Did a backup write this file? Only such a one is replaced."""
    try:
        with tarfile.open(path) as tar:
            first = tar.next()
    except (tarfile.TarError, OSError):
        return False
    return first is not None and first.name == DATABASE


def _write(file: BinaryIO, now: datetime) -> None:
    members: dict[str, Member] = {}
    with (
        tempfile.TemporaryDirectory(dir=settings.DATA_DIR) as folder,
        tarfile.open(fileobj=file, mode="w") as tar,
    ):
        copy = Path(folder) / DATABASE
        databases.dump(copy)
        members[DATABASE] = _add(tar, DATABASE, copy)
        for name, path in _kept_files():
            members[name] = _add(tar, name, path)
        manifest = present(now=now, members=members).dump()
        about = tarfile.TarInfo(NAME)
        about.size = len(manifest)
        tar.addfile(about, io.BytesIO(manifest))


def _kept_files() -> Iterator[tuple[str, Path]]:
    """Hidden files are uploads on their way; links are none of ours."""
    root = Path(settings.DATA_DIR)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                yield path.relative_to(root).as_posix(), path


def _add(tar: tarfile.TarFile, name: str, path: Path) -> Member:
    with path.open("rb") as file:
        about = tarfile.TarInfo(name)
        about.size = os.fstat(file.fileno()).st_size
        digested = _Digested(file)
        tar.addfile(about, digested)
    return Member(sha256=digested.digest.hexdigest(), bytes=about.size)
