"""The base models that trainings downloaded.

The module decides which of them go when they take too much room.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

HUB = Path("huggingface") / "hub"  # below the agent's models directory; the hub client's own layout
_PREFIX = "models--"


def make_room(models: Path, limit_bytes: int, used: Iterable[str]) -> None:
    """Delete downloaded models until they keep to the limit.

    Those unused for the longest time go first.
    used: names of the models of all claims here; they stay, however large, and count as used
    now.
    Models outside of the hub client's cache are never touched.
    """
    kept = {models / HUB / (_PREFIX + name.replace("/", "--")) for name in used}
    for folder in kept:
        with suppress(OSError):
            os.utime(folder)
    found = [path for path in (models / HUB).glob(_PREFIX + "*") if not path.is_symlink()]
    sizes = {path: _size_bytes(path) for path in found}
    total = sum(sizes.values())
    for path in sorted(set(found) - kept, key=_used_at):
        if total <= limit_bytes:
            return
        shutil.rmtree(path, ignore_errors=True)
        total -= sizes[path]
        log.info("model deleted", extra={"model": path.name, "bytes": sizes[path]})


def _size_bytes(folder: Path) -> int:
    """Of its files; links, which snapshots consist of, count nothing."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _used_at(folder: Path) -> tuple[float, str]:
    return folder.lstat().st_mtime, folder.name
