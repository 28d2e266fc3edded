"""Programs that tests need beyond Python packages, and how they get here."""

from __future__ import annotations

import os
import shutil
import subprocess

from portal.ops.launch.broker import find_server
from tests.harness.servers import postgres_binaries


def chromium() -> str | None:
    """The path of a Chromium or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def missing() -> list[str]:
    """Debian's names of the packages whose programs are not here."""
    here = {
        "chromium": chromium(),
        "postgresql": postgres_binaries(),
        "redis-server": shutil.which("redis-server") or shutil.which("valkey-server") or find_server(),
    }
    return [package for package, program in here.items() if program is None]


def provide() -> None:
    """Install what is missing where we may, and say in one line what stays missing."""
    if missing() and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"Installing {', '.join(missing())} …", flush=True)
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        quiet = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update"], **quiet)  # type: ignore[call-overload]
        install = ["apt-get", "install", "-y", "--no-install-recommends", *missing()]
        subprocess.run(install, **quiet)  # type: ignore[call-overload]
    if still := missing():
        print(f"Not on this machine: {', '.join(still)}; the tests that need them are skipped.", flush=True)
