"""All executors by name, as `--executor` chooses among them."""

from __future__ import annotations

from collections.abc import Callable

from trainer.agent.executors.base import Executor, ExecutorOptions
from trainer.agent.executors.process import ProcessExecutor

EXECUTORS: dict[str, Callable[[ExecutorOptions], Executor]] = {
    "process": ProcessExecutor,
}
