"""Trainings as children of a shell that is never waited for.

The shell writes down how its child ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from trainer.agent.executors.base import Cause, End, Handle, Launch
from trainer.agent.node.usage import Load
from trainer.agent.node.user import RunAs

MARK = "SHELL_CLAIM"
PATIENCE_S = 5.0
# The outer shell leaves at once, so that the inner one has no parent that could wait for it.
SCRIPT = '("$@" >>log.txt 2>&1; echo $? >"$CODE.part"; mv "$CODE.part" "$CODE") & exit 0'


class ShellExecutor:
    """An executor that keeps no notes.

    Its processes carry a mark, and exit codes lie in a folder of its own.
    """

    def __init__(self, _run_as: RunAs | None = None) -> None:
        self._codes = Path(tempfile.gettempdir())

    def begin(self, claim: str) -> Handle:
        self._code_file(claim).unlink(missing_ok=True)
        return Handle(claim)

    def submit(self, launch: Launch, begun: Handle) -> Handle:
        mark = {MARK: launch.claim, "CODE": str(self._code_file(launch.claim))}
        command = ["/bin/sh", "-c", SCRIPT, "sh", *launch.command]
        subprocess.run(
            command, cwd=launch.run, env={**launch.environment, **mark}, start_new_session=True, check=True
        )
        return begun

    def poll(self, handle: Handle) -> End | None:
        runs, code = any(_marked(handle)), self._code(handle)  # in this order: it may end in between
        if code is None:
            return None if runs else End(cause=Cause.UNSEEN)
        if code > 128:
            return End(cause=Cause.KILLED, code=128 - code, killer=signal.Signals(code - 128).name)
        return End(cause=Cause.EXIT, code=code)

    def load(self, handle: Handle) -> Load | None:
        seconds, memory = 0.0, 0
        for process in _marked(handle):
            with suppress(psutil.Error):
                seconds += process.cpu_times().user
                memory += process.memory_info().rss
        return Load(seconds, memory)

    def cancel(self, handle: Handle, *, force: bool) -> None:
        """Signal the training, but not the shell around it.

        The shell is left to write down the end; its child may still be on its way.
        """
        number, give_up = signal.SIGKILL if force else signal.SIGTERM, time.monotonic() + PATIENCE_S
        while not self._signal(handle, number) and any(_marked(handle)) and time.monotonic() < give_up:
            time.sleep(0.02)

    def _signal(self, handle: Handle, number: signal.Signals) -> bool:
        sent = False
        for process in _marked(handle):
            with suppress(psutil.Error):
                if process.name() != "sh":
                    process.send_signal(number)
                    sent = True
        return sent

    def _code_file(self, claim: str) -> Path:
        return self._codes / f"shell-executor-{os.getuid()}-{claim}"

    def _code(self, handle: Handle) -> int | None:
        with suppress(FileNotFoundError):
            return int(self._code_file(handle.claim).read_text())
        return None


def _marked(handle: Handle) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == handle.claim and process.status() != psutil.STATUS_ZOMBIE:
                yield process
