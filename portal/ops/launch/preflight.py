"""Checks before a start, a folder of our own and a free port, and a clean end."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil

SERVED_WITHIN_S = 60.0


class LaunchFailed(Exception):
    """The portal cannot start; the message says why and what to do."""


def own_folder(data: Path) -> int:
    """Make the data folder and lock it against a second start.

    Returns the lock's descriptor. Trainings of a root agent run as another user and pass through
    the folder (0711).
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        data.chmod(0o711 if os.geteuid() == 0 else 0o700)
        held = os.open(data / "launch.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise LaunchFailed(f"Cannot use {data} ({error.strerror}): choose another with --data") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LaunchFailed(f"A portal is running on {data}: stop it, or choose another --data") from error
    return held


def check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise LaunchFailed(
                f"Port {port} on {host} is not free ({error.strerror}): choose another with --port"
            ) from error


def wait_until_served(url: str) -> None:
    end = time.monotonic() + SERVED_WITHIN_S
    while True:
        with suppress(httpx.TransportError):
            if httpx.get(f"{url}/healthz", trust_env=False, timeout=5).is_success:
                return
        if time.monotonic() > end:
            raise LaunchFailed(f"The web server does not answer at {url}; its log says why")
        time.sleep(0.1)


def end_leftovers(node: Path) -> None:
    """Kill trainings that outlived their agent.

    They name their run directory on the command line.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(word.startswith(str(node / "runs")) for word in process.cmdline()):
                process.send_signal(signal.SIGKILL)
