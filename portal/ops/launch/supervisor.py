"""A small supervisor.

It starts processes, restarts those that die, and leaves nothing behind. It runs in the main
thread only: Linux ties a child's death signal to the thread that started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LOG_LIMIT_BYTES = 20_000_000
FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0
HEALTHY_AFTER_S = 30.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process to run: its command, its name, and how it stops.

    stop_s: seconds it may take. stop_round: when all stop, a round begins once the one before has ended, and
    the processes of a round end side by side; what others need for their own end is in a later round.
    """

    name: str
    command: tuple[str, ...]
    stop_s: float = 10.0
    stop_round: int = 1
    env: Mapping[str, str] = field(default_factory=dict)


def _die_with_parent() -> None:
    """Ask the kernel for a TERM when the supervisor is gone, however it went."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """One supervised process in a process group of its own.

    It has a log file and a back-off.
    """

    def __init__(self, process: Process, env: Mapping[str, str], log: Path) -> None:
        self.process, self.env, self.log = process, {**env, **process.env}, log
        self.delay_s, self.due = FIRST_DELAY_S / 2, 0.0
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.popen = subprocess.Popen(
                self.process.command,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self.started, self.reported = time.monotonic(), False

    def tend(self, say: Callable[[str], None]) -> None:
        """Start the process again, some time after it died; keep its log within bounds."""
        self._bound_log()
        if self.popen.poll() is None:
            return
        now = time.monotonic()
        if not self.reported:
            self._end_group()
            healthy = now - self.started > HEALTHY_AFTER_S
            self.delay_s = FIRST_DELAY_S if healthy else min(2 * self.delay_s, LONGEST_DELAY_S)
            self.due, self.reported = now + self.delay_s, True
            code = self.popen.returncode
            say(f"{self.process.name} ended with code {code}; next start in {self.delay_s:g} s ({self.log})")
        elif now >= self.due:
            self.start()

    def _bound_log(self) -> None:
        """Bound the size of the log file.

        The child holds the file open, so its content moves, not the file; a line may get lost.
        """
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
            os.truncate(self.log, 0)

    def stop(self) -> None:
        """TERM to the leader, time to finish, then KILL to whatever is left of its group."""
        self.ask_to_stop()
        self.end()

    def ask_to_stop(self) -> None:
        self.stop_by = time.monotonic() + self.process.stop_s
        if self.popen.poll() is None:
            self.popen.terminate()

    def end(self) -> None:
        """Wait for a leader that was asked to stop, for the rest of its time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(max(0.0, self.stop_by - time.monotonic()))
        self._end_group()
        self.popen.wait()

    def _end_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)


class Supervisor:
    """Keeps a list of processes running."""

    def __init__(self, *, env: Mapping[str, str], log_dir: Path, say: Callable[[str], None]) -> None:
        log_dir.mkdir(parents=True, exist_ok=True)
        self.env, self.log_dir, self.say = env, log_dir, say
        self.children: dict[str, Child] = {}

    def start(self, process: Process) -> None:
        self.children[process.name] = Child(process, self.env, self.log_dir / f"{process.name}.log")

    def tend(self) -> None:
        """Look after every child once; to be called about twice a second."""
        for child in self.children.values():
            child.tend(self.say)

    def stop(self) -> None:
        """Stop all, round after round."""
        children = self.children.values()
        for number in sorted({child.process.stop_round for child in children}):
            together = [child for child in children if child.process.stop_round == number]
            for child in together:
                child.ask_to_stop()
            for child in together:
                child.end()
        self.children.clear()
