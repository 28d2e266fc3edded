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

from trainer.agent.executors.base import Cause, End, ExecutorOptions, Handle, Launch
from trainer.agent.executors.local import LocalMachine
from trainer.agent.node.kernel_oom import kernel_oom_kills
from trainer.agent.node.usage import Load

log = logging.getLogger(__name__)

CLAIM_MARK = "FORETUNE_CLAIM"  # every process of a training carries it, also one that left its group
_GONE_WITHIN_S = 5.0
_EXEC_WITHIN_S = 2.0  # of a machine with much to do
_BARE_LOOKS = 5


class ProcessExecutor(LocalMachine):
    """Executor that starts, watches and ends processes.

    Noted are pid, start time, which start of the machine it is, and how often memory had run out.
    """

    def __init__(self, options: ExecutorOptions) -> None:
        super().__init__(options)
        self._run_as = options.user
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def begin(self, claim: str) -> Handle:
        """Return a handle with what the kernel counts before the start."""
        return Handle(claim, {"oom_kills": kernel_oom_kills(), "machine": start_of_machine()})

    def submit(self, launch: Launch, begun: Handle) -> Handle:
        """Hand the folder to the user and start the process.

        It gets nothing of the agent's but its log file.
        """
        if self._run_as is not None:
            self._run_as.own(launch.run)
        user, group = (self._run_as.uid, self._run_as.gid) if self._run_as else (None, None)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        output = os.open(launch.run / "log.txt", flags, 0o600)
        try:
            child = subprocess.Popen(
                list(launch.command),
                cwd=launch.run,
                env={**launch.environment, CLAIM_MARK: launch.claim},
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
        notes = {**begun.notes, "pid": child.pid, "start_time": start_time(child.pid)}
        return Handle(launch.claim, notes)

    def poll(self, handle: Handle) -> End | None:
        """Return how the leader ended.

        A process that an earlier agent started has no exit code to read.
        """
        child = self._child(handle)
        if child is None:
            return None if self._leader(handle) else _ended(handle, None)
        code = child.poll()
        return None if code is None else _ended(handle, code)

    def load(self, handle: Handle) -> Load | None:
        """The use of the leader and its descendants."""
        leader = self._leader(handle)
        if leader is None:
            return None
        seconds, memory = 0.0, 0
        with suppress(psutil.Error):
            for process in (leader, *leader.children(recursive=True)):
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    seconds += times.user + times.system
                    memory += process.memory_info().rss
        return Load(seconds, memory)

    def cancel(self, handle: Handle, *, force: bool) -> None:
        """Ask the leader to save and end, or kill all processes of the claim.

        TERM goes to the leader; KILL goes to every process until none is left.
        """
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
                log.error("processes survive KILL", extra={"claim": handle.claim, "pids": pids})
                return
            time.sleep(0.02)

    def _child(self, handle: Handle) -> subprocess.Popen[bytes] | None:
        pid = handle.notes.get("pid")
        return self._children.get(pid) if isinstance(pid, int) else None

    def _leader(self, handle: Handle) -> psutil.Process | None:
        """Return the leader if it is alive and truly the one that was started.

        A pid alone may be reused.
        """
        pid = handle.notes.get("pid")
        if not isinstance(pid, int):  # the agent died between the start and the note of it
            return next((process for process in _alive() if _carries(process, handle.claim)), None)
        try:
            process = psutil.Process(pid)
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        same = start_time(pid) == handle.notes.get("start_time")
        return process if alive and same and self._is_ours(process, handle) else None

    def _is_ours(self, process: psutil.Process, handle: Handle) -> bool:
        return process.pid in self._children or _carries(process, handle.claim)

    def _members(self, handle: Handle) -> Iterator[psutil.Process]:
        """Return the leader, its descendants, and all processes with the claim's mark.

        They count wherever they went.
        """
        leader = self._leader(handle)
        family = set()
        if leader is not None:
            with suppress(psutil.Error):
                family = {leader.pid, *(child.pid for child in leader.children(recursive=True))}
        for process in _alive():
            if process.pid in family or _carries(process, handle.claim):
                yield process


def _ended(handle: Handle, code: int | None) -> End:
    """Return the end of a process with this exit code.

    The code is negative for a signal, None if it was not seen.
    """
    killed = code is not None and code < 0
    killer = _signal_name(-code) if code is not None and killed else ""
    if code in {-signal.SIGKILL, None} and _ran_out_of_memory(handle):
        return End(cause=Cause.OUT_OF_MEMORY, code=code, killer=killer)
    if code is None:
        anew = handle.notes.get("machine") not in (None, "", start_of_machine())
        return End(cause=Cause.RESTARTED if anew else Cause.UNSEEN)
    return End(cause=Cause.KILLED if killed else Cause.EXIT, code=code, killer=killer)


def _ran_out_of_memory(handle: Handle) -> bool:
    """The kernel has ended a process for want of memory since before the start."""
    before = handle.notes.get("oom_kills")
    return isinstance(before, int) and kernel_oom_kills() > before


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def start_of_machine() -> str:
    """The kernel's name for this start of the machine; empty where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_time(pid: int) -> float:
    """Return when a process started, in the kernel's ticks since boot.

    0 if there is no such process. The time of day is not used: it moves when the clock is set.
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
        return _environment(process).get(CLAIM_MARK) == claim
    except (psutil.Error, OSError):
        return False


def _environment(process: psutil.Process) -> dict[str, str]:
    """Return the environment of a process, also of one that is in the middle of exec.

    Linux shows none from the moment exec drops the old image until it has laid out the new one, and
    no arguments either. A process of the kernel, without a program, has none at all.
    """
    deadline, bare = time.monotonic() + _EXEC_WITHIN_S, 0
    while not (environment := process.environ()) and bare < _BARE_LOOKS:
        if time.monotonic() > deadline or not process.exe():
            break
        bare += bool(process.cmdline())  # with arguments and yet without environment
        time.sleep(0.001)
    return environment
