"""The protocol of executors, which run trainings: five verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from trainer.agent.node.usage import Load


@dataclass(frozen=True, slots=True)
class Handle:
    """The means to find a training again, also one that an earlier agent started.

    notes: the executor's own, JSON values. They are kept where the training can write, and may
    be lost: the claim alone decides whose training is meant, and must be enough.
    """

    claim: str
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A training to start in its folder. Its output goes to RUN/log.txt."""

    claim: str
    command: Sequence[str]
    run: Path
    environment: Mapping[str, str]


class Cause(StrEnum):
    """Why a training is over, as far as its executor saw."""

    EXIT = "exit"  # it left by itself
    OUT_OF_MEMORY = "out of memory"  # the system ended it, or one of its processes, for want of memory
    KILLED = "killed"  # by somebody else or by `cancel`
    UNSEEN = "unseen"  # it ended while no agent was there
    RESTARTED = "restarted"  # its machine was started anew since


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a training ended.

    code: for its owner, None if it was not seen.
    killer: the signal that killed it.
    """

    cause: Cause
    code: int | None = None
    killer: str = ""


class Executor(Protocol):
    """Runs trainings. Each verb returns at once and may be called from any thread."""

    def begin(self, claim: str) -> Handle:
        """Return the handle to note before the start.

        An agent that dies meanwhile thereby finds the training.
        """

    def submit(self, launch: Launch, begun: Handle) -> Handle:
        """Start the training and return a handle with more than `begin` could give.

        Raises OSError if that is impossible.
        """

    def poll(self, handle: Handle) -> End | None:
        """The training's end; None while it runs."""

    def load(self, handle: Handle) -> Load | None:
        """The training's use of processors and memory; None where that is unknown."""

    def cancel(self, handle: Handle, *, force: bool) -> None:
        """Ask it to save and leave; with `force`, end it and everything it started."""
