"""The node's part of Foretune as a wheel.

One line of shell makes a machine a node with it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

PACKAGES = "/agent/v1/packages/"
CONSTRAINTS = "constraints.txt"
_ROOT = Path(__file__).resolve().parent.parent
_OTHERS = ("pyproject.toml", "LICENSE", "requirements/node.in", "requirements/gpu.in")
_LOCKS = ("torch.txt", "train.lock", "gpu.lock")
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
_EPOCH = "315532800"  # 1980: the first moment that a zip file can name, so that each build has the same bytes


class BuildFailed(Exception):
    """The wheel cannot be built; the message says why and what to do."""


def wheel() -> Path:
    """Return the wheel of the sources as they are.

    It is built once for all processes on this DATA_DIR. Raises BuildFailed.
    """
    folder = Path(settings.DATA_DIR) / "packages" / _digest()
    if built := next(folder.glob("*.whl"), None):
        return built
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = _build(Path(scratch))
        # Concurrent builds replace it by the same bytes.
        return made.replace(folder / made.name)


def sha256_of(file: Path) -> str:
    """Return the digest that pip checks."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def constraints() -> str:
    """Return the versions that this release was tested with.

    Without hashes: with them pip would ask for one of torch, too.
    """
    lines = [line for name in _LOCKS for line in (_ROOT / "requirements" / name).read_text().splitlines()]
    pinned = [line.removesuffix("\\").rstrip() for line in lines if line and not line.startswith((" ", "#"))]
    return "\n".join(pinned) + "\n"


JOIN_TOKEN = "FORETUNE_JOIN_TOKEN"  # noqa: S105 (the variable's name)
REQUIREMENTS = "foretune-node/portal.txt"


def join_command(*, portal: str, token: str) -> str:
    """Return one shell line that installs the wheel, checked, and starts the agent.

    portal: its address without a trailing slash.
    token: lets pip download and the agent enrol. It goes to both by the environment: command lines can be
    read by everybody on a machine, and pip puts variables into the lines of a file.

    Raises BuildFailed.
    """
    scheme, _, host = portal.partition("://")
    packages = f"{scheme}://join:${{{JOIN_TOKEN}}}@{host}{PACKAGES}"
    file, place = wheel(), "foretune-node/bin"
    lines = ("%s\\n", f"-c {packages}{CONSTRAINTS}", f"{packages}{file.name}#sha256={sha256_of(file)}")
    steps = (
        f"export {JOIN_TOKEN}={shlex.quote(token)}",
        "python3 -m venv foretune-node",
        f"{shlex.join(['printf', *lines])} > {REQUIREMENTS}",
        f"{place}/pip install --no-input -r {REQUIREMENTS}",
        shlex.join([f"{place}/foretune-node", "--portal", portal]),
    )
    return " && ".join(steps)


def _sources() -> Iterator[Path]:
    yield from (_ROOT / name for name in _OTHERS)
    yield from sorted((_ROOT / "trainer").rglob("*.py"))


def _digest() -> str:
    digest = hashlib.sha256(f"{_BUILD}{_EPOCH}".encode())
    for path in _sources():
        digest.update(f"{path.relative_to(_ROOT)} {sha256_of(path)}\n".encode())
    return digest.hexdigest()[:16]


def _build(scratch: Path) -> Path:
    """Build from a copy with fixed modes; the folder of the sources may be read-only."""
    for path in _sources():
        copy = scratch / "source" / path.relative_to(_ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod(0o644)
    command = [sys.executable, "-c", _BUILD, str(scratch)]
    environment = {"PATH": os.defpath, "SOURCE_DATE_EPOCH": _EPOCH}
    try:
        subprocess.run(
            command,
            cwd=scratch / "source",
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise BuildFailed(
            f"The package of nodes cannot be built ({why}): install requirements/build.lock for the portal."
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildFailed(f"The package of nodes cannot be built: {error}") from error
    return next(scratch.glob("*.whl"))
