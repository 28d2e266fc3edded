"""The processes of a portal on one machine, by name and command."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from portal.ops.launch.supervisor import Process

REPOSITORY = Path(__file__).resolve().parents[3]
EVERYBODY = stat.S_IROTH | stat.S_IXOTH
TRAINING_PYTHON = REPOSITORY / ".venv-train" / "bin" / "python"


def web(host: str, port: int, name: str = "web") -> Process:
    """Return the web server as one process with eight threads.

    SQLite has one writer, and pages poll rather than stream. It stops after the agent, which brings
    it the last checkpoints.
    """
    options = ("-c", "python:portal.configuration.gunicorn", "--workers=1", "--graceful-timeout=5")
    bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    command = (sys.executable, "-m", "gunicorn", "portal.wsgi", *options, f"--bind={bind}")
    return Process(name=name, command=command, stop_round=2)


def worker(queue: str, name: str = "") -> Process:
    """A Celery worker for one queue; workers need no chatter among themselves.

    name: what tells it from another worker of that queue on this machine.
    """
    name = name or queue
    quiet = ("--without-gossip", "--without-mingle", "--loglevel=WARNING")
    command = ("-m", "celery", "-A", "portal", "worker", "-Q", queue, "-c", "1", "-n", f"{name}@%h", *quiet)
    return Process(name=f"worker-{name}", command=(sys.executable, *command), stop_s=15)


def beat() -> Process:
    command = ("-m", "celery", "-A", "portal", "beat", "--loglevel=WARNING", "--pidfile=")
    return Process(name="beat", command=(sys.executable, *command))


def open_to_all(folder: Path) -> None:
    """Let every user read a folder that a strict umask closed.

    Trainings of a portal that root starts run as another user.
    """
    if folder.stat().st_mode & EVERYBODY == EVERYBODY:
        return
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            enters = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(path.stat().st_mode | (EVERYBODY if enters else stat.S_IROTH))


def agent(portal: str, folder: Path, join_file: Path, *options: str) -> Process:
    """The node agent of this machine. Its trainings save a checkpoint before it stops.

    A portal that is started as root, perhaps with a Python below root's home, must still be able to train.
    """
    place = ("--portal", portal, "--dir", str(folder), "--join-file", str(join_file))
    if os.geteuid() == 0:
        for folder in (TRAINING_PYTHON.parents[1], REPOSITORY / "trainer"):
            open_to_all(folder)
    command = (str(TRAINING_PYTHON), "-m", "trainer.agent", *place, "--user=nobody,root", *options)
    return Process(name="agent", command=command, stop_s=45)
