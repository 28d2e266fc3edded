"""The disk that DATA_DIR lies on: how full it is, and a reserve for a full one.

The reserve is a file. It is given away when the disk has no room left, so that people can sign in, cancel and
delete, and nodes can report; it is made again when there is room. What it takes never counts as free.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)
LARGEST_RESERVE = 64 << 20
SHARE_OF_RESERVE = 0.05  # of a small disk
SCARCE = 0.9  # the share in use from which on administrators are warned
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_ROOM_FOR_DATABASE = ("disk is full", "No space left on device")  # SQLite, PostgreSQL
_CHUNK = 1 << 20
_COUNTED_ELSEWHERE = frozenset({"files", "artifacts", "node"})


@dataclass(frozen=True, slots=True)
class Disk:
    """What the portal may use of its disk, without what only root may, in bytes.

    free_bytes: without the reserve, whether that lies there or was given away.
    """

    total_bytes: int
    free_bytes: int

    @property
    def is_full(self) -> bool:
        """Has it no room for new work?"""
        return self.free_bytes < _reserve_bytes(self.total_bytes) // 2

    @property
    def is_scarce(self) -> bool:
        return self.free_bytes <= self.total_bytes * (1 - SCARCE)

    @property
    def room(self) -> str:
        """How much is left, in words."""
        return f"{_size(self.free_bytes)} of {_size(self.total_bytes)} are free"

    @property
    def trouble(self) -> str:
        """What people have to know of it; empty while it is well."""
        if self.is_full:
            return (
                f"The disk of the portal is full: {self.room}. New work is refused, running trainings go on."
            )
        used = 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0
        return f"The disk of the portal is {used:.0%} full: {self.room}." if self.is_scarce else ""


def disk() -> Disk:
    """The disk as it is now."""
    used, free = _usage()
    given_away = _reserve_bytes(used + free) - held_bytes()
    return Disk(total_bytes=used + free, free_bytes=max(0, free - max(0, given_away)))


def rest_bytes() -> dict[str, int]:
    """What else lies in DATA_DIR, in bytes by name.

    That is all but the files of people and jobs, and a local node's.
    """
    rest = [path for path in Path(settings.DATA_DIR).iterdir() if path.name not in _COUNTED_ELSEWHERE]
    return {path.name: _taken(path) for path in sorted(rest)}


def _taken(path: Path) -> int:
    total = 0
    for one in (path, *path.rglob("*")):
        with suppress(OSError):  # it was removed meanwhile
            status = one.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def is_full_disk(failed: BaseException | None) -> bool:
    """Does this error, or one that caused it, say that a disk had no room?"""
    while failed is not None:
        if isinstance(failed, OSError) and failed.errno in NO_ROOM:
            return True
        if any(mark in str(failed) for mark in _NO_ROOM_FOR_DATABASE):
            return True
        failed = failed.__cause__ or failed.__context__
    return False


def relieve() -> None:
    """Give the reserve away if the disk has no room left."""
    used, free = _usage()
    if free < _reserve_bytes(used + free) // 4 and held_bytes():
        with suppress(FileNotFoundError):  # another process was first
            _reserve().unlink()
            log.warning("the disk is full; its reserve was given away")


def keep_reserve() -> None:
    """Make the reserve where there is none and enough room for one."""
    used, free = _usage()
    wanted = _reserve_bytes(used + free)
    if held_bytes() or free < 3 * wanted:
        return
    growing = _reserve().with_name(f".reserve-{os.getpid()}")
    try:
        with growing.open("wb") as file:
            for written in range(0, wanted, _CHUNK):
                file.write(os.urandom(min(_CHUNK, wanted - written)))  # zeros may take no room
            os.fsync(file.fileno())
        growing.replace(_reserve())
    except OSError as failed:
        log.warning("the disk's reserve could not be made", extra={"error": str(failed)})
    finally:
        growing.unlink(missing_ok=True)


def _usage() -> tuple[int, int]:
    """The bytes in use, and free for us."""
    found = shutil.disk_usage(settings.DATA_DIR)
    return found.used, found.free


def _reserve() -> Path:
    return Path(settings.DATA_DIR) / "reserve"


def _reserve_bytes(total: int) -> int:
    return min(LARGEST_RESERVE, int(total * SHARE_OF_RESERVE))


def held_bytes() -> int:
    """The size of the reserve; 0 without one."""
    try:
        return _reserve().stat().st_size
    except OSError:
        return 0


def _size(count: float) -> str:
    """Bytes as disks are sold: `90 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
