"""Environments of clients, made once by pip or npm and kept beside other temporary files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

VERSIONS = Path(__file__).with_name("versions.txt")


def environments() -> dict[str, list[str]]:
    """What pip or npm installs, by the name of the environment."""
    lines = [line.split() for line in VERSIONS.read_text().splitlines() if line and not line.startswith("#")]
    return {name: requirements for name, *requirements in lines}


def binaries(name: str) -> Path:
    """The folder of the commands of an environment of Python."""

    def install(folder: Path) -> Sequence[str | Path]:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        return [folder / "bin" / "python", "-m", "pip", "install", "-q"]

    return _made(name, install) / "bin"


def modules(name: str) -> Path:
    """The folder of the packages of an environment of Node.js; its commands are in `.bin`."""

    def install(folder: Path) -> Sequence[str | Path]:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed")
        return [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder]

    return _made(name, install) / "node_modules"


def _made(name: str, install: Callable[[Path], Sequence[str | Path]]) -> Path:
    """install: prepares the folder and returns the command that the requirements are given to."""
    requirements = environments()[name]
    digest = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"foretune-client-{name}-{digest}"
    if not (folder / "whole").exists():
        command = [*install(folder), *requirements]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            pytest.skip(f"{name} cannot be installed here: {done.stdout[-300:]}")
        (folder / "whole").touch()
    return folder
