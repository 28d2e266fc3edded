"""Trainings under an agent as tests see them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil

from tests.trainer.agent.fakes.fake_portal import FakePortal, Given, until


def under_way(portal: FakePortal, mode: str = "steady") -> Given:
    """Give the agent that runs a claim, and wait until its training has told of some steps."""
    given = portal.give("c1", mode)
    until(lambda: steps(given))
    return given


def orphaned(portal: FakePortal, agent: subprocess.Popen[bytes]) -> Given:
    """Kill the agent once the training of its claim is under way."""
    given = under_way(portal)
    agent.kill()
    agent.wait()
    return given


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
