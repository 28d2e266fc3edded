"""Putting an archive back.

All of it is read and checked before anything of the portal changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Container, Iterator
from contextlib import ExitStack
from pathlib import Path

from django.conf import settings
from django.db import connection

from portal.accounts.models import User
from portal.ops.backup import databases
from portal.ops.backup.errors import BadArchive, NotEmpty
from portal.ops.backup.manifest import DATABASE, FOLDERS, MAX_BYTES, NAME, Manifest, Member, check_fits, parse

CHUNK_BYTES = 1 << 20


def restore(source: Path, *, force: bool) -> Manifest:
    """Replace this portal's database and files by those of an archive.

    Returns its manifest. Database and folders change only after every digest was found right, and
    go back if one of them fails. Raises ArchiveError, OSError.
    """
    root = Path(settings.DATA_DIR)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)  # a database of SQLite lies there, too
    if not force and not is_empty():
        raise NotEmpty("This portal has people or files, which a restore would replace: say so with --force.")
    with tempfile.TemporaryDirectory(dir=root, prefix="restore-") as folder:
        staged = Path(folder) / "new"
        manifest = unpack(source, staged)
        check_fits(manifest)
        _swap(staged, Path(folder) / "old", root)
    return manifest


def is_empty() -> bool:
    """Is this a new portal, without people and files, migrated or not?"""
    tables = connection.introspection.table_names()
    people = User._meta.db_table in tables and User.objects.exists()
    root = Path(settings.DATA_DIR)
    return not people and not any(any((root / name).glob("*")) for name in ("files", "artifacts"))


def unpack(source: Path, folder: Path) -> Manifest:
    """Extract the archive's files below `folder`, checking each digest.

    The manifest states the digests. Names and sizes are looked through first: nothing is written of
    an archive that is wrong in those. Raises BadArchive.
    """
    try:
        with tarfile.open(source, "r:") as tar:
            files, manifest = _survey(tar)
            _check_sizes(manifest.members, files)
            _check_room(files, folder.parent)
            found = {name: _extract(tar, about, folder / name) for name, about in files.items()}
    except (tarfile.TarError, EOFError) as error:
        raise BadArchive(f"{source} is not a complete archive ({error}).") from error
    _refuse_other({name for name, member in found.items() if manifest.members[name] != member})
    return manifest


def _survey(tar: tarfile.TarFile) -> tuple[dict[str, tarfile.TarInfo], Manifest]:
    """The members by name, and what the manifest among them says. Raises BadArchive."""
    files: dict[str, tarfile.TarInfo] = {}
    for about in tar:
        _check_member(about, files)
        files[about.name] = about
    if NAME not in files:
        raise BadArchive(f"It has no {NAME}: it was cut short, or is no backup of a portal.")
    return files, parse(_content(tar, files.pop(NAME)))


def _check_sizes(promised: dict[str, Member], files: dict[str, tarfile.TarInfo]) -> None:
    if missing := sorted(set(promised) - set(files)):
        raise BadArchive(f"It lacks {len(missing)} of its files, among them {missing[0]}.")
    _refuse_other(
        {name for name, about in files.items() if name not in promised or promised[name].bytes != about.size}
    )
    if DATABASE not in files:
        raise BadArchive("It holds no database.")


def _refuse_other(wrong: set[str]) -> None:
    if wrong:
        raise BadArchive(f"{len(wrong)} of its files are not what its {NAME} says, among them {min(wrong)}.")


def _check_room(files: dict[str, tarfile.TarInfo], folder: Path) -> None:
    needed, free = sum(about.size for about in files.values()), shutil.disk_usage(folder).free
    if needed > free:
        raise BadArchive(f"Unpacking needs {needed:,} bytes and DATA_DIR has {free:,} free: make room first.")


def _check_member(about: tarfile.TarInfo, known: Container[str]) -> None:
    """Raise BadArchive unless it is a whole plain file of a name that backups make."""
    parts = about.name.split("/")
    ours = about.name in (NAME, DATABASE) or (parts[0] in FOLDERS and len(parts) > 1)
    # A sparse member takes nothing here and whatever it says when it is written.
    whole = about.isreg() and not about.issparse()
    plain = whole and "\\" not in about.name and not {"", ".", ".."} & set(parts)
    if not (ours and plain) or about.name in known:
        raise BadArchive(f"It holds {about.name[:200]!r}, which no backup of a portal would.")


def _content(tar: tarfile.TarFile, about: tarfile.TarInfo) -> bytes:
    if about.size > MAX_BYTES:
        raise BadArchive(f"Its {NAME} is larger than any could be.")
    return b"".join(_pieces(tar, about))


def _extract(tar: tarfile.TarFile, about: tarfile.TarInfo, target: Path) -> Member:
    digest, size = hashlib.sha256(), 0
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with target.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        for piece in _pieces(tar, about):
            digest.update(piece)
            size += file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return Member(sha256=digest.hexdigest(), bytes=size)


def _pieces(tar: tarfile.TarFile, about: tarfile.TarInfo) -> Iterator[bytes]:
    source = tar.extractfile(about)
    while source is not None and (piece := source.read(CHUNK_BYTES)):
        yield piece


def _swap(staged: Path, old: Path, root: Path) -> None:
    """Folders by renaming, then the database; whatever fails, the renames are undone."""
    old.mkdir()
    with ExitStack() as undo:
        for name in FOLDERS:
            (staged / name).mkdir(exist_ok=True, mode=0o700)
            if (root / name).exists():
                (root / name).rename(old / name)
                undo.callback((old / name).rename, root / name)
            (staged / name).rename(root / name)
            undo.callback((root / name).rename, staged / name)
        databases.load(staged / DATABASE)
        undo.pop_all()
