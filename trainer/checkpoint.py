"""Checkpoints that are whole or absent.

They are written aside, synced, listed in a manifest, renamed. Standard library only, so that
the agent can judge a checkpoint as well. Its contents are the business of
`trainer.train.checkpoint_state`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from trainer.protocol import File, ProtocolError
from trainer.protocol_parsing import parse_file

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d+)\Z")


class BadCheckpoint(ValueError):
    """A folder that is no complete checkpoint.

    The message says what is missing or changed.
    """


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """A complete checkpoint.

    It has its folder, the optimiser steps done, and all its files with the manifest.
    """

    folder: Path
    step: int
    files: tuple[File, ...]


def save(root: Path, step: int, write: Callable[[Path], None], keep: int = 2) -> CheckpointFolder:
    """Write `root`/step-N through `write(folder)` and keep only the newest `keep`.

    A crash at any moment leaves either no step-N or a complete one. Raises OSError, e.g. on a
    full disk, and leaves earlier checkpoints alone then.
    """
    root.mkdir(parents=True, exist_ok=True)
    _remove(folder for folder in root.glob(".writing-*"))
    folder, aside = root / f"step-{step}", root / f".writing-{step}"
    try:
        aside.mkdir()
        write(aside)
        files = describe(aside)
        _write_synced(
            aside / MANIFEST,
            json.dumps({"step": step, "files": [asdict(entry) for entry in files]}, indent=1),
        )
        for path in aside.iterdir():
            _sync(path)
        _sync(aside)
        _remove([folder])  # left by an earlier use of this run directory
        aside.rename(folder)
        _sync(root)
    except BaseException:
        _remove([aside])
        raise
    _remove(_folders(root)[keep:])
    return CheckpointFolder(folder, step, (*files, _file(folder, folder / MANIFEST)))


def verify(folder: Path) -> CheckpointFolder:
    """Return the checkpoint in `folder`.

    Raises BadCheckpoint unless every file has the digest of the manifest.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        step, files = int(manifest["step"]), tuple(parse_file(raw) for raw in manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, ProtocolError) as wrong:
        raise BadCheckpoint(f"{folder.name} has no readable manifest: {wrong}") from wrong
    for entry in files:
        path = folder / entry.path
        if not path.is_file() or path.stat().st_size != entry.bytes or digest(path) != entry.sha256:
            raise BadCheckpoint(f"{folder.name}/{entry.path} is missing or differs from the manifest")
    return CheckpointFolder(folder, step, (*files, _file(folder, folder / MANIFEST)))


def newest(root: Path) -> CheckpointFolder | None:
    """The complete checkpoint with the most steps below `root`, if there is any."""
    for folder in _folders(root):
        try:
            return verify(folder)
        except BadCheckpoint:
            continue
    return None


def describe(folder: Path) -> tuple[File, ...]:
    """All files below `folder` with size and SHA-256, by path."""
    return tuple(_file(folder, path) for path in sorted(folder.rglob("*")) if path.is_file())


def _file(folder: Path, path: Path) -> File:
    name = path.relative_to(folder).as_posix()
    return File(path=name, sha256=digest(path), bytes=path.stat().st_size)


def digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that a reader sees the old text or the new one.

    This also holds after a crash.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    _write_synced(aside, text)
    aside.replace(path)
    _sync(path.parent)


def _folders(root: Path) -> list[Path]:
    """Folders named step-N, most steps first."""
    numbered = [(int(match[1]), path) for path in root.glob("step-*") if (match := _NAME.match(path.name))]
    return [path for _, path in sorted(numbered, reverse=True)]


def _remove(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _write_synced(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
