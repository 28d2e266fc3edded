"""The processes of a portal on one machine, by name and command."""

from __future__ import annotations

import sys
from pathlib import Path

from portal.ops.launch.supervisor import Process

REPOSITORY = Path(__file__).resolve().parents[3]
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


def agent(portal: str, folder: Path, join_file: Path, *options: str) -> Process:
    """The node agent of this machine. Its trainings save a checkpoint before it stops.

    A portal that is started as root, perhaps with a Python below root's home, must still be able to train.
    """
    place = ("--portal", portal, "--dir", str(folder), "--join-file", str(join_file))
    command = (str(TRAINING_PYTHON), "-m", "trainer.agent", *place, "--allow-root", *options)
    return Process(name="agent", command=command, stop_s=45)
