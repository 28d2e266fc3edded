"""Trainings of a small engine with a queue of its own, which takes its time and tells no process ids.

`python queued.py FOLDER` is the engine: it goes on without the agent. What is asked of it and what it says
lie in FOLDER/CLAIM; while FOLDER/hold is there, it begins nothing.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from trainer.agent.executors.base import Cause, End, ExecutorOptions, Handle, Launch, Waiting
from trainer.agent.node.environment import IMPORT_FOLDER
from trainer.agent.node.usage import Load
from trainer.agent.storage.folder import read_json, write_json
from trainer.protocol import GpuFacts, NodeFacts

SEED = 36
SEATS, GIB = 2, 2**30
LONGEST_DELAY_S = 0.4
LOOK_EVERY_S = 0.02
GONE_WITHIN_S = 20.0
IDLE_S = 5.0
MARK = "ENGINE_JOB"


class QueueExecutor:
    """The agent's side: it knows claims alone, and has neither GPUs of this machine nor notes."""

    def __init__(self, options: ExecutorOptions) -> None:
        self._folder, self._seats = options.folder.root / "engine", options.slots or SEATS
        self._engines: list[subprocess.Popen[bytes]] = []

    def facts(self) -> NodeFacts:
        seat = GpuFacts(index=0, model="cpu", memory_bytes=GIB, peak_flops=5e10, bandwidth_bytes_s=8e9)
        return NodeFacts(
            hostname="engine",
            cores=self._seats,
            memory_bytes=GIB * self._seats,
            gpus=tuple(replace(seat, index=index) for index in range(self._seats)),
        )

    def begin(self, claim: str) -> Handle:
        return Handle(claim)

    def submit(self, launch: Launch, begun: Handle) -> Handle:
        job = self._folder / launch.claim
        shutil.rmtree(job, ignore_errors=True)
        job.mkdir(parents=True)
        asked = {
            "command": list(launch.command),
            "run": str(launch.run),
            "environment": dict(launch.environment),
            "seats": launch.resources.nodes * launch.resources.gpus_per_node,
        }
        write_json(job / "job.json", asked)
        self._wake()
        return begun

    def poll(self, handle: Handle) -> End | None:
        said = self._said(handle)
        if said is None:
            return End(cause=Cause.UNSEEN)
        if said["phase"] != "over":
            self._wake()
            return None
        code = said.get("code")
        killer = signal.Signals(-code).name if code is not None and code < 0 else ""
        return End(cause=Cause.KILLED if killer or code is None else Cause.EXIT, code=code, killer=killer)

    def load(self, handle: Handle) -> Load | None:
        return None

    def cancel(self, handle: Handle, *, force: bool) -> None:
        give_up = time.monotonic() + GONE_WITHIN_S
        while (said := self._said(handle)) and said["phase"] != "over":
            write_json(self._folder / handle.claim / "stop.json", {"force": force})
            if not force or time.monotonic() > give_up:
                return
            self._wake()
            time.sleep(LOOK_EVERY_S)

    def waiting(self, handle: Handle) -> Waiting | None:
        said = self._said(handle)
        return Waiting(reason=said["words"]) if said and said["phase"] == "queued" else None

    def log(self, handle: Handle) -> str:
        said = self._said(handle)
        return str(said["words"]) if said else ""

    def _said(self, handle: Handle) -> dict[str, Any] | None:
        """What the engine says of a claim; None if it knows nothing of it."""
        job = self._folder / handle.claim
        if not (job / "job.json").exists():
            return None
        return read_json(job / "said.json") or {"phase": "queued", "words": "not looked at yet"}

    def _wake(self) -> None:
        """Start the engine unless it is there: it leaves when it has nothing to do."""
        with (self._folder / "lock").open("a") as lock:
            if not _held(lock.fileno()):
                return
        command = [sys.executable, __file__, str(self._folder)]
        environment = {**os.environ, "PYTHONPATH": IMPORT_FOLDER}
        self._engines.append(
            subprocess.Popen(
                command, env=environment, cwd="/", stdin=subprocess.DEVNULL, start_new_session=True
            )
        )


def _held(lock: int) -> bool:
    """Take the lock of the one engine of a folder; False if another has it."""
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


class Job:
    """One training, as the engine has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        delay_s = random.Random(f"{SEED} {folder.name}").uniform(0.0, LONGEST_DELAY_S)
        self._begins, self._asked = time.monotonic() + delay_s, False
        self._training: subprocess.Popen[bytes] | None = None
        self.asked = read_json(folder / "job.json") or {}
        self.over = False
        self._say("queued", "Resources")

    @property
    def holds(self) -> int:
        """Seats that it has now."""
        return self.asked["seats"] if self._training and not self.over else 0

    def look(self, free: int) -> None:
        """Begin, stop or end it, as it is time for; so many seats are free."""
        stop = read_json(self.folder / "stop.json")
        if self._training is None:
            if stop:
                self._say("over", "withdrawn")
            elif time.monotonic() > self._begins and self.asked["seats"] <= free:
                self._begin()
            return
        if stop and stop["force"]:
            self._kill()
        elif stop and not self._asked:
            self._asked = True
            self._training.send_signal(signal.SIGTERM)
        code = self._training.poll()
        if code is not None:
            self._kill()  # what it left behind
            self._say("over", "", code)

    def _begin(self) -> None:
        run = Path(self.asked["run"])
        try:
            with (run / "log.txt").open("ab") as output:
                self._training = subprocess.Popen(
                    self.asked["command"],
                    cwd=run,
                    env={**self.asked["environment"], MARK: str(self.folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as error:
            return self._say("over", f"cannot be started: {error}")
        return self._say("running", "")

    def _kill(self) -> None:
        for process in self._marked():
            with suppress(psutil.Error):
                process.kill()

    def _marked(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.folder):
                    yield process

    def _say(self, phase: str, words: str, code: int | None = None) -> None:
        self.over = phase == "over"
        with suppress(OSError):
            write_json(self.folder / "said.json", {"phase": phase, "words": words, "code": code})


def main(folder: Path) -> None:
    """The engine, until it has had nothing to do for a while."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    if not _held(lock):
        return
    jobs: dict[Path, Job] = {}
    busy = time.monotonic()
    while time.monotonic() < busy + IDLE_S:
        for path in folder.glob("*/job.json"):
            if not (path.parent / "said.json").exists():
                jobs[path.parent] = Job(path.parent)
        for job in jobs.values():
            if not job.over:
                busy = time.monotonic()
                job.look(0 if (folder / "hold").exists() else SEATS - sum(one.holds for one in jobs.values()))
        time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
