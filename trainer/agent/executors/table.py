"""All executors by name, as `--executor` chooses among them."""

from __future__ import annotations

from collections.abc import Callable

from trainer.agent.executors.base import Executor
from trainer.agent.executors.process import ProcessExecutor
from trainer.agent.node.user import RunAs

# Each is made for the user whose rights trainings have; None: the agent's own.
EXECUTORS: dict[str, Callable[[RunAs | None], Executor]] = {
    "process": ProcessExecutor,
}
