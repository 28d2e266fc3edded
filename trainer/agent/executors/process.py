"""Trainings as processes of this machine, each the leader of its own session."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from trainer.agent.executors.base import Exit, Handle, Launch
from trainer.agent.node.environment import CLAIM_MARK
from trainer.agent.node.user import RunAs
from trainer.agent.storage.folder import read_inside

log = logging.getLogger(__name__)

_GONE_WITHIN_S = 5.0


class ProcessExecutor:
    """Starts, watches and ends processes. A handle holds pid, start time and claim."""

    def __init__(self, run_as: RunAs | None = None) -> None:
        self._run_as = run_as
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def submit(self, launch: Launch) -> Handle:
        """Start the process with nothing of the agent's but its log file."""
        user, group = (self._run_as.uid, self._run_as.gid) if self._run_as else (None, None)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        output = os.open(launch.run / "log.txt", flags, 0o600)
        try:
            child = subprocess.Popen(
                list(launch.command),
                cwd=launch.run,
                env=dict(launch.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
                group=group,
                extra_groups=None if user is None else [],
                umask=0o077,
            )
        finally:
            os.close(output)
        with self._lock:
            self._children[child.pid] = child
        return {"claim": launch.claim, "pid": child.pid, "start_time": start_time(child.pid)}

    def poll(self, handle: Handle) -> Exit | None:
        """How the leader ended. A process that an earlier agent started has no exit code to read."""
        child = self._children.get(handle.get("pid", 0))
        if child is not None:
            code = child.poll()
            return None if code is None else Exit(code=code)
        return None if self._leader(handle) else Exit(code=None)

    def logs(self, run: Path, offset: int, limit: int) -> bytes:
        """A piece of log.txt."""
        try:
            return read_inside(run, "log.txt", offset, limit)
        except OSError:
            return b""

    def cancel(self, handle: Handle, *, force: bool) -> None:
        """TERM to the leader, which saves; or KILL to every process of the claim until none is left."""
        if not force:
            leader = self._leader(handle)
            if leader is not None:
                with suppress(psutil.NoSuchProcess):
                    leader.send_signal(signal.SIGTERM)
            return
        deadline = time.monotonic() + _GONE_WITHIN_S
        while members := list(self._members(handle)):
            for process in members:
                with suppress(psutil.Error):
                    process.kill()
            self.poll(handle)  # reaps the leader, which would count as a member for ever otherwise
            if time.monotonic() > deadline:
                pids = [process.pid for process in members]
                log.error("processes survive KILL", extra={"claim": handle["claim"], "pids": pids})
                return
            time.sleep(0.02)

    def _leader(self, handle: Handle) -> psutil.Process | None:
        """The leader, if it is alive and truly the one that was started: a pid alone may be reused."""
        pid = handle.get("pid")
        if not isinstance(pid, int):  # the agent died between the start and the note of it
            return next((process for process in _alive() if _carries(process, handle["claim"])), None)
        try:
            process = psutil.Process(pid)
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        same = start_time(pid) == handle.get("start_time")
        return process if alive and same and self._is_ours(process, handle) else None

    def _is_ours(self, process: psutil.Process, handle: Handle) -> bool:
        return process.pid in self._children or _carries(process, handle["claim"])

    def _members(self, handle: Handle) -> Iterator[psutil.Process]:
        """Leader, descendants, session, and whoever carries the claim's mark, wherever it went."""
        leader = self._leader(handle)
        family = set()
        if leader is not None:
            with suppress(psutil.Error):
                family = {leader.pid, *(child.pid for child in leader.children(recursive=True))}
        for process in _alive():
            if process.pid in family or _carries(process, handle["claim"]):
                yield process


def start_time(pid: int) -> float:
    """When a process started, in the kernel's ticks since boot; 0 if there is no such process.

    Not the time of day: that moves when the clock is set.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        return float(text.rpartition(")")[2].split()[19])
    except OSError:
        pass
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return 0.0


def _alive() -> Iterator[psutil.Process]:
    own = os.getpid()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != own and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _carries(process: psutil.Process, claim: str) -> bool:
    try:
        return process.environ().get(CLAIM_MARK) == claim
    except (psutil.Error, OSError):
        return False
