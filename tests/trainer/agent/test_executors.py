"""The answers of every executor about a training.

They tell how it ended and which resources it used; its claim is enough to ask.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.trainer.agent.fakes.fake_portal import ONE_SLOT, until
from trainer.agent.executors import process
from trainer.agent.executors.base import Cause, End, Executor, ExecutorOptions, Handle, Launch
from trainer.agent.executors.process import ProcessExecutor
from trainer.agent.executors.table import EXECUTORS
from trainer.agent.storage.folder import NodeFolder

BUSY = [sys.executable, "-c", "while True: pass"]


def shell(text: str) -> list[str]:
    return ["/bin/sh", "-c", text]


def start(executor: Executor, run: Path, command: list[str]) -> Handle:
    """Start a command as the training of a claim that is named like its folder."""
    environment = {"PATH": os.defpath, "HOME": str(run)}
    launch = Launch(claim=run.name, command=command, run=run, environment=environment, resources=ONE_SLOT)
    return executor.submit(launch, executor.begin(run.name))


def end_of(executor: Executor, handle: Handle) -> End:
    found: End = until(lambda: executor.poll(handle))
    executor.cancel(handle, force=True)
    return found


@pytest.fixture
def options(tmp_path: Path) -> ExecutorOptions:
    return ExecutorOptions(folder=NodeFolder(tmp_path / "node"))


@pytest.fixture(params=sorted(EXECUTORS))
def executor(request: pytest.FixtureRequest, options: ExecutorOptions) -> Executor:
    return EXECUTORS[request.param](options)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("exit 0", End(cause=Cause.EXIT, code=0)),
        ("exit 76", End(cause=Cause.EXIT, code=76)),
        ("kill -KILL $$", End(cause=Cause.KILLED, code=-signal.SIGKILL, killer="SIGKILL")),
    ],
)
def test_an_executor_says_how_a_training_ended(
    executor: Executor, tmp_path: Path, text: str, end: End
) -> None:
    assert end_of(executor, start(executor, tmp_path, shell(text))) == end


def test_what_a_training_prints_goes_to_its_log(executor: Executor, tmp_path: Path) -> None:
    end_of(executor, start(executor, tmp_path, shell("echo out; echo err >&2")))
    assert sorted((tmp_path / "log.txt").read_text().split()) == ["err", "out"]


def test_the_load_of_a_training_rises(executor: Executor, tmp_path: Path) -> None:
    handle = start(executor, tmp_path, BUSY)
    until(lambda: (load := executor.load(handle)) and load.processor_s > 0 and load.memory_bytes > 0)
    executor.cancel(handle, force=True)


@pytest.fixture
def another(executor: Executor, options: ExecutorOptions) -> Executor:
    """That of an agent which follows the first one."""
    successor: Executor = type(executor)(options)  # type: ignore[call-arg]
    return successor


def test_another_executor_finds_a_training_by_its_claim_alone(
    executor: Executor, another: Executor, tmp_path: Path
) -> None:
    handle = start(executor, tmp_path, shell("sleep 300"))
    assert another.poll(Handle(handle.claim)) is None
    another.cancel(Handle(handle.claim), force=True)
    assert until(lambda: executor.poll(handle)).cause is Cause.KILLED
    assert another.poll(Handle(handle.claim)) is not None


@pytest.mark.parametrize(
    ("notes", "now", "cause"),
    [
        ({"machine": "a"}, "a", Cause.UNSEEN),
        ({"machine": "a"}, "b", Cause.RESTARTED),
        ({"machine": ""}, "b", Cause.UNSEEN),
        ({}, "b", Cause.UNSEEN),  # of an earlier agent
    ],
)
def test_a_training_that_is_gone_with_its_agent_tells_a_restart_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, options: ExecutorOptions, notes: dict[str, str], now: str, cause: Cause
) -> None:
    monkeypatch.setattr(process, "start_of_machine", lambda: now)
    assert ProcessExecutor(options).poll(Handle("claim-none", notes)) == End(cause=cause)


@pytest.fixture
def looper(tmp_path: Path) -> Iterator[str]:
    """A program of its own that is gone after the test, whether an executor finds it or not."""
    program = shutil.copy("/bin/sh", tmp_path / "looper")
    yield str(program)
    while left := [found for found in psutil.process_iter() if str(program) in _command_of(found)]:
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
                one.wait(5)


def _command_of(found: psutil.Process) -> str:
    try:
        return " ".join(found.cmdline())
    except psutil.Error:
        return ""


def test_a_training_in_the_middle_of_exec_is_found(
    executor: Executor, another: Executor, tmp_path: Path, looper: str
) -> None:
    """A process that does nothing but exec itself shows no environment at many moments."""
    again = f'exec {looper} -c "$0" "$0"'
    handle = start(executor, tmp_path, [looper, "-c", again, again])
    assert [end for _ in range(60) if (end := another.poll(Handle(handle.claim)))] == []
    executor.cancel(handle, force=True)


@pytest.mark.parametrize(
    ("text", "kills", "end"),
    [
        ("kill -KILL $$", 4, End(cause=Cause.OUT_OF_MEMORY, code=-signal.SIGKILL, killer="SIGKILL")),
        ("kill -KILL $$", 3, End(cause=Cause.KILLED, code=-signal.SIGKILL, killer="SIGKILL")),
        ("kill -TERM $$", 4, End(cause=Cause.KILLED, code=-signal.SIGTERM, killer="SIGTERM")),
        ("exit 1", 4, End(cause=Cause.EXIT, code=1)),
    ],
)
def test_a_process_that_was_killed_while_the_kernel_was_short_of_memory_ran_out_of_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: ExecutorOptions,
    text: str,
    kills: int,
    end: End,
) -> None:
    """kills: how many processes the kernel has ended by then; 3 before the start."""
    executor = ProcessExecutor(options)
    monkeypatch.setattr(process, "kernel_oom_kills", lambda: 3)
    handle = start(executor, tmp_path, shell(text))
    monkeypatch.setattr(process, "kernel_oom_kills", lambda: kills)
    assert end_of(executor, handle) == end


@pytest.mark.parametrize(
    ("notes", "cause"),
    [
        ({"oom_kills": 2}, Cause.OUT_OF_MEMORY),
        ({"oom_kills": 3}, Cause.UNSEEN),
        ({"oom_kills": "x"}, Cause.UNSEEN),
        ({}, Cause.UNSEEN),
    ],
)
def test_an_end_that_nobody_saw_is_of_memory_only_if_the_kernel_ended_something_since_the_start(
    monkeypatch: pytest.MonkeyPatch, options: ExecutorOptions, notes: dict[str, object], cause: Cause
) -> None:
    monkeypatch.setattr(process, "kernel_oom_kills", lambda: 3)
    assert ProcessExecutor(options).poll(Handle("nobody", notes)) == End(cause=cause)
