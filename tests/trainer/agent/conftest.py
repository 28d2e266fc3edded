"""A fake portal, agents in threads or processes, and no training left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.trainer.agent.fakes import driver
from tests.trainer.agent.fakes.fake_portal import JOIN, PAUSE_S, FakePortal
from trainer.agent import loop
from trainer.agent.__main__ import build
from trainer.agent.claims import claim
from trainer.agent.executors.process import CLAIM_MARK
from trainer.agent.executors.table import EXECUTORS
from trainer.agent.loop import Agent
from trainer.agent.node.discovery import processor_name
from trainer.agent.settings import Settings
from trainer.agent.storage.folder import write_json

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SHORTEST_PAUSE_S", PAUSE_S)
    monkeypatch.setattr(claim, "LOOK_EVERY_S", PAUSE_S)


@pytest.fixture
def portal() -> Iterator[FakePortal]:
    portal = FakePortal()
    yield portal
    portal.close()


@pytest.fixture
def node_dir(tmp_path: Path) -> Iterator[Path]:
    """The agent's folder, with a measured slot.

    Processes that still run in it afterwards are ended.
    """
    folder = tmp_path / "node"
    folder.mkdir()
    write_json(
        folder / "facts.json", {"processor": processor_name(), "peak_flops": 1e11, "bandwidth_bytes_s": 1e10}
    )
    yield folder
    for process in psutil.process_iter():
        try:
            if CLAIM_MARK in process.environ() and str(folder) in process.environ().get("HOME", ""):
                process.kill()
        except psutil.Error:
            continue


@pytest.fixture(params=sorted(EXECUTORS))
def executor(request: pytest.FixtureRequest) -> str:
    """By name: whatever runs an agent is shown for each of them."""
    return str(request.param)


@dataclass
class Running:
    """An agent that runs in a thread."""

    agent: Agent
    thread: threading.Thread

    def stop(self) -> None:
        self.agent.stops_asked += 1
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.agent.close()


StartAgent = Callable[..., Running]
StartProcess = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def start_agent(portal: FakePortal, node_dir: Path, executor: str) -> Iterator[StartAgent]:
    started = []

    def start(**changes: Any) -> Running:
        values = {"name": "test", "join_token": JOIN, "slots": 2, "stop_grace_s": 3.0, **changes}
        values["executor"] = executor
        agent = build(
            Settings(portal=portal.url, dir=node_dir, command=driver.COMMAND, user="nobody,root", **values)
        )
        running = Running(agent, threading.Thread(target=agent.run, daemon=True))
        running.thread.start()
        started.append(running)
        return running

    yield start
    for running in started:
        if running.thread.is_alive():
            running.stop()


@pytest.fixture
def start_process(portal: FakePortal, node_dir: Path, executor: str) -> Iterator[StartProcess]:
    """An agent in a process of its own, to be killed."""
    started = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", driver.__name__, portal.url, str(node_dir), executor]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
