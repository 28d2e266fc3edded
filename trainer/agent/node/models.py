"""The base models that lie on this node.

The module tells which those are, and which downloaded ones go when they take too much room.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from trainer.protocol_parsing.facts import MOST_MODELS

log = logging.getLogger(__name__)

HUB = Path("huggingface") / "hub"  # below the agent's models directory; the hub client's own layout
_PREFIX = "models--"
_MADE_HERE = "builtin"
_WEIGHTS = (".safetensors", ".bin")


def held(models: Path) -> tuple[str, ...]:
    """The names of models of the hub that trainings find here.

    They were downloaded as a whole, or put here by hand.
    """
    folders = (path.parents for path in models.glob("*/*/config.json") if path.is_file())
    by_hand = {f"{above.name}/{folder.name}" for folder, above, *_ in folders if above.name != _MADE_HERE}
    whole = (path.name for path in (models / HUB).glob(f"{_PREFIX}*") if _is_whole(path))
    downloaded = {name.removeprefix(_PREFIX).replace("--", "/", 1) for name in whole}
    return tuple(sorted(by_hand | downloaded)[:MOST_MODELS])


def _is_whole(folder: Path) -> bool:
    """Whether a download of its main revision has come to its end, weights included."""
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text().strip()
    except OSError:
        return False
    weights = (path for ending in _WEIGHTS for path in snapshot.glob(f"*{ending}"))
    complete = not any((folder / "blobs").glob("*.incomplete"))
    return complete and (snapshot / "config.json").is_file() and any(path.is_file() for path in weights)


def make_room(models: Path, limit_bytes: int, used: Iterable[str]) -> None:
    """Delete downloaded models until they keep to the limit.

    Models unused for the longest time go first.
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
    """The size of a folder's files; links, of which snapshots consist, count nothing."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _used_at(folder: Path) -> tuple[float, str]:
    return folder.lstat().st_mtime, folder.name
