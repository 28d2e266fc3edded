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


def training_user(name: str, folder: NodeFolder, *, allow_root: bool) -> RunAs | None:
    """The user to run trainings as, or None to run them as the agent's own user.

    Only root can change the user. Raises SetupError if there is no such user, or if it cannot reach the
    Python installation or the agent's folder, unless trainings may run as root.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise SetupError(f"--user {name}: this machine has no such user") from None
    if entry.pw_uid == 0:
        return None
    user = RunAs(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    if not _can_train(user, folder):
        why = f"the user {name} cannot read this Python installation ({sys.executable}), the trainer or --dir"
        if not allow_root:
            raise SetupError(
                f"--user {name}: {why}, so trainings would run as root; install them outside of root's home, "
                "run the agent as a user of its own, or say --allow-root"
            )
        log.warning("trainings run as root", extra={"reason": why})
        return None
    user.own(folder.models)
    return user


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
