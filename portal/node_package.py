"""How a machine becomes a node: the wheel, and the line of shell that installs it."""

from __future__ import annotations

import shlex
from pathlib import Path

from django.conf import settings

from portal import wheels
from portal.wheels import sha256_of

PACKAGES = "/agent/v1/packages/"
CONSTRAINTS = "constraints.txt"
_LOCKS = ("torch.txt", "train.lock", "gpu.lock")


def wheel() -> Path:
    """Return the node's wheel of this release. Raises wheels.BuildFailed."""
    return wheels.wheel(wheels.NODE, Path(settings.DATA_DIR) / "packages")


def constraints() -> str:
    """Return the versions that this release was tested with.

    Without hashes: with them pip would ask for one of torch, too.
    """
    locks = (wheels.ROOT / "requirements" / name for name in _LOCKS)
    lines = [line for lock in locks for line in lock.read_text().splitlines()]
    pinned = [line.removesuffix("\\").rstrip() for line in lines if line and not line.startswith((" ", "#"))]
    return "\n".join(pinned) + "\n"


JOIN_TOKEN = "FORETUNE_JOIN_TOKEN"  # noqa: S105 (the variable's name)
REQUIREMENTS = "foretune-node/portal.txt"


def join_command(*, portal: str, token: str) -> str:
    """Return one shell line that installs the wheel, checked, and starts the agent.

    portal: its address without a trailing slash.
    token: lets pip download and the agent enrol. It goes to both by the environment: command lines can be
    read by everybody on a machine, and pip puts variables into the lines of a file.

    Raises wheels.BuildFailed.
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
