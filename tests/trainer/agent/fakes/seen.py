"""What tests see of trainings under an agent."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.trainer.agent.fakes.fake_portal import Given


def steps(given: Given, more_than: int = 3) -> bool:
    return len(given.bodies("step")) > more_than


def pid_of(node_dir: Path, claim: str = "c1") -> int:
    """As the training itself wrote it down."""
    return int((node_dir / "runs" / claim / "starts").read_text().split()[-1])


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
