"""The unprivileged user that trainings run as when the agent itself runs as root."""

from __future__ import annotations

import logging
import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from trainer.agent.errors import SetupError
from trainer.agent.node.environment import IMPORT_FOLDER
from trainer.agent.storage.folder import NodeFolder

log = logging.getLogger(__name__)

_PROBE = """
import os, sys, trainer.protocol
folder, installed = sys.argv[1:]
sys.exit(not (os.access(folder, os.X_OK) and os.access(installed, os.R_OK)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAs:
    """The user that trainings run as."""

    name: str
    uid: int
    gid: int

    def own(self, folder: Path) -> None:
        """Give a folder with all that is in it to this user alone."""
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        folder.chmod(0o700)


def training_user(names: str, folder: NodeFolder) -> RunAs | None:
    """The user to run trainings as, or None to run them as the agent's own user.

    Only root can change the user. names: with commas between; the first who can reach the Python installation
    and the agent's folder. Root can, and trainings run as root only where it is named. Raises SetupError if
    there is no such user, or if none of them can train.
    """
    if os.geteuid() != 0:
        return None
    for name in names.split(","):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise SetupError(f"--user {name}: this machine has no such user") from None
        if entry.pw_uid == 0:
            log.warning("trainings run as root")
            return None
        user = RunAs(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
        if _can_train(user, folder):
            user.own(folder.models)
            return user
        why = f"cannot read this Python installation ({sys.executable}), the trainer or --dir"
        log.warning("a user cannot train", extra={"user": name, "reason": why})
    raise SetupError(
        f"--user {names}: {names} {why}; install them outside of root's home, run the agent as a user of its"
        " own, or say --user root to let trainings run as root"
    )


def _can_train(user: RunAs, folder: NodeFolder) -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, str(folder.runs), psutil.__file__],
            env={"PATH": os.defpath, "PYTHONPATH": IMPORT_FOLDER},
            cwd="/",
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
