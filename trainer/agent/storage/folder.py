"""The agent's own folder: its holder, the node token, and each claim's files.

DIR/token.json        the node token (mode 600)
DIR/enrolment.json    the node token that was asked for, until an answer comes (mode 600)
DIR/place.json        where the folder lies, to tell a copy of it
DIR/facts.json        what was measured once
DIR/speed_tests.json  the newest speed test of each model of GPU
DIR/link_tests.json   how fast the links between its GPUs are
DIR/spool/CLAIM/      the agent's records of a claim; trainings cannot enter it
DIR/runs/CLAIM/       the training's own folder
DIR/models/           built-in and downloaded base models, shared by all trainings
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainer.agent.errors import SetupError

CHECKPOINTS, TOKENS = "checkpoints", "tokens"
KEEP_CHECKPOINTS_S = 24 * 3600.0


def write_json(path: Path, value: Any) -> None:
    """Replace a file in one step.

    A link that a training put in its place is replaced, never followed.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".agent-")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(value, file)
            os.fchmod(file.fileno(), 0o600)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file.

    None where there is no such file or it holds something else.
    """
    try:
        value = json.loads(read_inside(path.parent, path.name))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def open_inside(folder: Path, name: str) -> int:
    """Open a regular file below `folder` for reading and return its descriptor.

    A training may not make the agent, perhaps root, read other people's files by means of a link: raises
    OSError for a link, for anything but a plain file, and for a path that leaves the folder.
    """
    path = folder / name
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise OSError(f"{name} leaves its folder")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{name} is no plain file")
    return descriptor


def read_inside(folder: Path, name: str, offset: int = 0, limit: int = 10_000_000) -> bytes:
    """At most `limit` bytes of a file below `folder`, from `offset` on."""
    with os.fdopen(open_inside(folder, name), "rb") as file:
        file.seek(offset)
        return file.read(limit)


class NodeFolder:
    """Paths and rules of DIR."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.runs, self.spool, self.models = (self.root / name for name in ("runs", "spool", "models"))
        self.token_file = self.root / "token.json"
        self.enrolment_file = self.root / "enrolment.json"
        self.facts_file = self.root / "facts.json"
        self.speed_tests_file = self.root / "speed_tests.json"
        self.link_tests_file = self.root / "link_tests.json"
        self.place_file = self.root / "place.json"
        self._lock: int | None = None

    def prepare(self) -> None:
        """Make the folders.

        Others may pass through to a run that is theirs, and list nothing.
        """
        for path, mode in ((self.root, 0o711), (self.runs, 0o711), (self.spool, 0o700), (self.models, 0o755)):
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(mode)

    def lock(self) -> None:
        """Keep a second agent out of this folder for as long as this process lives."""
        descriptor = os.open(self.root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise SetupError(f"another agent is using {self.root}; stop it or give another --dir") from None
        self._lock = descriptor

    def refuse_a_copy(self) -> None:
        """Raise SetupError for a copy of another agent's folder.

        It would speak for the same node.

        It is another folder (a copy has another inode), at another place or on another machine. A folder
        that was moved within its file system is still itself, and one that a backup put back where it
        was is taken for it.
        """
        here = {"inode": self.root.stat().st_ino, "path": str(self.root), "machine": _machine()}
        known = read_json(self.place_file) or here
        elsewhere = known.get("path") != here["path"] or known.get("machine") != here["machine"]
        if known.get("inode") != here["inode"] and elsewhere:
            raise SetupError(
                f"{self.root} is a copy of {known.get('path')}: two agents would speak for one node. Give an"
                " empty --dir and a new join token; or, if the other folder is gone for good, delete"
                f" {self.place_file}"
            )
        if known != here or not self.place_file.exists():
            write_json(self.place_file, here)

    def unlock(self) -> None:
        """Let another agent in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def known_claims(self) -> list[str]:
        """Claims that an earlier agent took up here and that were not forgotten."""
        return sorted(path.parent.name for path in self.spool.glob("*/claim.json"))

    def forget(self, claim: str, *, keep: Collection[str] = ()) -> None:
        """Delete the files of a claim.

        Folders of its run in `keep` stay for a day: checkpoints that only this node has, tokens
        that need not be made again.
        """
        run = self.runs / claim
        if any((run / name).is_dir() for name in keep):
            _remove(path for path in run.glob("*") if path.name not in keep)
            _remove(run.glob("checkpoints/.*"))  # being written when the training was killed
            with suppress(FileNotFoundError):
                os.utime(run)
        else:
            _remove([run])
        _remove([self.spool / claim])

    def sweep(self, needed: Iterable[str]) -> None:
        """Delete forgotten runs that nobody resumed for a day.

        needed: claims whose folders must stay. File ages come from the wall clock: a clock that jumps
        costs at worst a checkpoint that could be resumed on this node alone.
        """
        keep = {*needed, *self.known_claims()}
        for run in self.runs.iterdir():
            if run.name not in keep and time.time() - run.lstat().st_mtime > KEEP_CHECKPOINTS_S:
                _remove([run])


def _machine() -> str:
    """What tells this machine from others; empty where it has no such name."""
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def _remove(paths: Iterable[Path]) -> None:
    """Files or whole folders; links are never followed."""
    for path in list(paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
