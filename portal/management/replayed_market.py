"""A market that is replayed on this machine.

A recorded trace says when spot nodes come and go; real agents with CPU slots come and go with it, and real
trainings on them are stopped with a notice or killed without one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from portal.ops.launch import processes
from scheduler.core.market.types import Quote

LOOK_EVERY_S = 0.2
NOTICE = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How a trace is played.

    speed: seconds of the trace in one second. nodes: the most that are held. slots: of each. notice_s: how
    long a node that goes is told before; every second one is killed without a word.
    """

    market: str
    quotes: Sequence[Quote]
    speed: float
    nodes: int
    slots: int
    notice_s: float


@dataclass(slots=True)
class _Agent:
    """A node of the market: its process, its folder, and when it is to end."""

    process: subprocess.Popen[bytes]
    folder: Path
    ends_at: float | None = None


@dataclass(slots=True)
class Player:
    """Plays a trace: starts and ends its own agents, and nothing else.

    on_quote: called with each quote as its moment comes.
    """

    replay: Replay
    portal: str
    folder: Path
    join_file: Path
    on_quote: Callable[[Quote], None]
    _agents: list[_Agent] = field(default_factory=list)
    _started: int = 0
    _withdrawn: int = 0

    def play(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Play to the end of the trace, or until stopped; no agent is left behind."""
        begun, left = time.monotonic(), list(self.replay.quotes)
        try:
            while (left or any(agent.ends_at for agent in self._agents)) and not stopped():
                at = (time.monotonic() - begun) * self.replay.speed
                while left and left[0].at <= at:
                    self._come_to(left.pop(0))
                self._end_due()
                time.sleep(LOOK_EVERY_S)
        finally:
            for agent in self._agents:
                _kill(agent)

    def _come_to(self, quote: Quote) -> None:
        self.on_quote(quote)
        if quote.available is None:
            return
        staying = [agent for agent in self._agents if agent.ends_at is None]
        wanted = min(self.replay.nodes, quote.available)
        for agent in staying[wanted:]:
            self._withdraw(agent)
        for _ in range(wanted - len(staying)):
            self._start()

    def _start(self) -> None:
        self._started += 1
        name = f"{self.replay.market}-{self._started}"
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        options = (
            "--name", name, "--slots", str(self.replay.slots), "--no-speed-test", "--kind", "spot",
            "--market", self.replay.market, "--notice", str(folder.with_suffix(f".{NOTICE}")),
        )  # fmt: skip
        made = processes.agent(self.portal, folder, self.join_file, *options)
        self._agents.append(_Agent(subprocess.Popen(made.command, start_new_session=True), folder))

    def _withdraw(self, agent: _Agent) -> None:
        """Take the node back with a notice, and the next one without."""
        announced = self._withdrawn % 2 == 0
        self._withdrawn += 1
        if announced:
            agent.folder.with_suffix(f".{NOTICE}").write_text(f"{self.replay.notice_s:g}\n")
        agent.ends_at = time.monotonic() + (self.replay.notice_s if announced else 0.0)

    def _end_due(self) -> None:
        for agent in [one for one in self._agents if one.ends_at and one.ends_at <= time.monotonic()]:
            _kill(agent)
            self._agents.remove(agent)


def _kill(agent: _Agent) -> None:
    """End an agent and its trainings, as a machine that is switched off would."""
    try:
        children = psutil.Process(agent.process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    if agent.process.poll() is None:
        os.killpg(agent.process.pid, signal.SIGKILL)
    for child in children:
        if child.is_running():
            child.kill()
    agent.process.wait()
    agent.folder.with_suffix(f".{NOTICE}").unlink(missing_ok=True)
    shutil.rmtree(agent.folder, ignore_errors=True)
