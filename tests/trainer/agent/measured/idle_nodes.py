"""A node's folder and its preparation of runs, while it has no work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trainer.agent.claims.prepare import RunPreparation
from trainer.agent.executors.base import ExecutorOptions
from trainer.agent.executors.process import ProcessExecutor
from trainer.agent.node.network import Site
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import NodeFacts

TRAINER = (sys.executable, "-m", "trainer.run")


def node_folder(parent: Path) -> NodeFolder:
    made = NodeFolder(parent / "node")
    made.prepare()
    return made


def process_executor(folder: NodeFolder) -> ProcessExecutor:
    return ProcessExecutor(ExecutorOptions(folder=folder))


def workshop(folder: NodeFolder, facts: NodeFacts, command: Sequence[str] = TRAINER) -> RunPreparation:
    return RunPreparation(
        folder=folder,
        command=command,
        gpus=facts.gpus,
        cores=facts.cores,
        memory_bytes=facts.memory_bytes,
        site=Site(portal="http://127.0.0.1:1"),
    )
