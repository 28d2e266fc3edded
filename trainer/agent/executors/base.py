"""The protocols of executors, which run trainings.

Every executor has the six verbs of `Executor`. What else one has, it says by having the methods of one of the
small protocols: GPUs of this machine, a queue of its own, words of its own about a training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from trainer.agent.node.usage import Load, Loads
from trainer.agent.node.user import RunAs
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import GpuFacts, GpuUse, NodeFacts, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """What an executor is made from: the agent's folder, and what its options say.

    user: whose rights trainings have; None: the agent's own.
    slots: how many CPU slots to offer; None: as many as fit. topology: a file that says where they sit.
    """

    folder: NodeFolder
    user: RunAs | None = None
    slots: int | None = None
    topology: Path | None = None


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
    """A training to start in its folder. Its output goes to RUN/log.txt.

    resources: what it is to be given.
    inputs_ready: the folder holds its inputs; if not, whatever starts it fetches them first.
    """

    claim: str
    command: Sequence[str]
    run: Path
    environment: Mapping[str, str]
    resources: Resources
    inputs_ready: bool = True


class Cause(StrEnum):
    """Why a training is over, as far as its executor saw."""

    EXIT = "exit"  # it left by itself
    OUT_OF_MEMORY = "out of memory"  # the system ended it, or one of its processes, for want of memory
    KILLED = "killed"  # by somebody else or by `cancel`, perhaps before it began
    UNSEEN = "unseen"  # it ended while no agent was there
    RESTARTED = "restarted"  # its machine was started anew since


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a training ended.

    code: for its owner, None if it was not seen, or if the training never began.
    killer: the signal that killed it.
    """

    cause: Cause
    code: int | None = None
    killer: str = ""


class Executor(Protocol):
    """Runs trainings. Each verb returns at once and may be called from any thread."""

    def facts(self) -> NodeFacts:
        """What it has to run trainings on. Raises SetupError.

        Asked at the agent's start and every few minutes, never while it is asked already.
        """

    def begin(self, claim: str) -> Handle:
        """Return the handle to note before the start.

        An agent that dies meanwhile thereby finds the training.
        """

    def submit(self, launch: Launch, begun: Handle) -> Handle:
        """Start the training, or hand it to a queue.

        Returns a handle with more than `begin` could give. Raises OSError if that is impossible.
        """

    def poll(self, handle: Handle) -> End | None:
        """The training's end; None while it runs or waits to run."""

    def load(self, handle: Handle) -> Load | None:
        """The training's use of processors and memory; None where that is unknown."""

    def cancel(self, handle: Handle, *, force: bool) -> None:
        """Ask it to save and leave; with `force`, end it and everything it started.

        One that waits to run is withdrawn in both cases.
        """


@runtime_checkable
class LocalGpus(Protocol):
    """An executor whose trainings get GPUs or CPU slots of this machine.

    Of these the agent asks whether they can be used, whether somebody else does, and how busy they are;
    it measures their speed and their links. Without them, nothing of this machine is looked at.
    """

    def check(self, facts: NodeFacts) -> None:
        """Raise SetupError if trainings could not use what is offered."""

    def occupant(self, gpus: Sequence[GpuFacts]) -> str:
        """Who uses these GPUs though no training of the portal does; empty if nobody."""

    def use(self, slots: Sequence[GpuFacts], loads: Callable[[], Loads]) -> Sequence[GpuUse]:
        """How busy each of these is now.

        loads: what each training uses, with its slots; asked for only where it is needed.
        """


class LocalExecutor(Executor, LocalGpus, Protocol):
    """An executor on this machine, which is measured through it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A training in the queue of its executor.

    reason: why it has not begun, in the queue's own words.
    """

    reason: str = ""


@runtime_checkable
class OwnQueue(Protocol):
    """An executor whose trainings wait in a queue of its own before they begin."""

    def waiting(self, handle: Handle) -> Waiting | None:
        """How the training waits; None once it began, or if it is over."""


@runtime_checkable
class OwnLog(Protocol):
    """An executor that has something to say of trainings itself."""

    def log(self, handle: Handle) -> str:
        """Why the training ended or never began, in a line; empty if unknown."""
