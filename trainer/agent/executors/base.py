"""What the agent asks of whatever runs a training: four verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Handle = dict[str, Any]
"""JSON values by which a training is found again, also by a later agent. `{"claim": ...}` must be enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A training to start. Its output goes to RUN/log.txt."""

    claim: str
    command: Sequence[str]
    run: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A training that is over. code: negative for a signal, None where nobody was there to see it."""

    code: int | None


class Executor(Protocol):
    """Runs trainings. Each verb returns at once and may be called from any thread."""

    def submit(self, launch: Launch) -> Handle:
        """Start it. Raises OSError if that is impossible."""

    def poll(self, handle: Handle) -> Exit | None:
        """None while it runs."""

    def logs(self, run: Path, offset: int, limit: int) -> bytes:
        """At most `limit` bytes of its output from `offset` on; empty when there is no more."""

    def cancel(self, handle: Handle, *, force: bool) -> None:
        """Ask it to save and leave; with `force`, end it and everything it started."""
