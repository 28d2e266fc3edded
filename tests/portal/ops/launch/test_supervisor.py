from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from portal.ops.launch.supervisor import Process, Supervisor

FOREVER = "import time; time.sleep(600)"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(env=os.environ, log_dir=tmp_path, say=said.append)
    yield made
    made.stop()


def python(code: str, **more: object) -> Process:
    return Process(name="child", command=(sys.executable, "-c", code), **more)  # type: ignore[arg-type]


def until(true: Callable[[], object], supervisor: Supervisor | None = None) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it did not happen in a minute"
        if supervisor:
            supervisor.tend()
        time.sleep(0.02)


def test_a_process_that_dies_is_started_again_and_the_log_says_where(
    supervisor: Supervisor, said: list[str]
) -> None:
    supervisor.start(python(FOREVER))
    first = supervisor.children["child"].popen.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.children["child"].popen.pid != first, supervisor)
    assert psutil.pid_exists(supervisor.children["child"].popen.pid)
    assert "child ended with code -9" in said[0]
    assert "child.log" in said[0]


def test_a_process_that_dies_again_and_again_waits_longer_each_time(
    supervisor: Supervisor, said: list[str]
) -> None:
    supervisor.start(python("raise SystemExit(3)"))
    until(lambda: len(said) == 2, supervisor)
    assert "next start in 0.5 s" in said[0]
    assert "next start in 1 s" in said[1]


def test_stop_ends_stubborn_processes_and_their_children(supervisor: Supervisor, tmp_path: Path) -> None:
    spawn = f"""
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", {FOREVER!r}])
print(child.pid, flush=True)
child.wait()
"""
    supervisor.start(python(spawn, stop_s=0.2))
    log = tmp_path / "child.log"
    until(lambda: log.read_text().strip())
    grandchild = psutil.Process(int(log.read_text()))
    supervisor.stop()
    until(lambda: not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE)


SAYS_WHO_LEFT_BEFORE = """
import signal, sys, time
from pathlib import Path

own, *awaited = map(Path, sys.argv[1:])

def leave(*_):
    own.with_suffix(".asked").touch()
    while not all(path.exists() for path in awaited):
        time.sleep(0.01)
    own.with_suffix(".left").write_text(" ".join(sorted(path.stem for path in own.parent.glob("*.left"))))
    raise SystemExit

signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


def test_a_stop_ends_processes_side_by_side_and_those_that_others_need_after_them(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """Each of the first two leaves once the other was asked as well."""
    rounds = {"one": (1, ["two.asked"]), "two": (1, ["one.asked"]), "needed": (2, [])}
    for name, (number, awaited) in rounds.items():
        paths = (str(tmp_path / file) for file in (name, *awaited))
        command = (sys.executable, "-c", SAYS_WHO_LEFT_BEFORE, *paths)
        supervisor.start(Process(name=name, command=command, stop_round=number))
    until(lambda: all((tmp_path / f"{name}.log").read_text() for name in rounds))
    supervisor.stop()
    assert {path.stem for path in tmp_path.glob("*.left")} == set(rounds)
    assert (tmp_path / "needed.left").read_text() == "one two"


def test_an_overlong_log_starts_anew_and_keeps_its_last_part_beside(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.ops.launch.supervisor.LOG_LIMIT_BYTES", 1000)
    supervisor.start(python("print('x' * 2000, flush=True);" + FOREVER))
    until(lambda: (tmp_path / "child.log.1").exists(), supervisor)
    assert (tmp_path / "child.log").stat().st_size == 0
    assert (tmp_path / "child.log.1").stat().st_size > 2000


@pytest.mark.skipif(sys.platform != "linux", reason="the death signal is Linux's")
def test_nothing_survives_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    code = f"""
import os, pathlib, sys, time
from portal.ops.launch.supervisor import Process, Supervisor
s = Supervisor(env=os.environ, log_dir=pathlib.Path({str(tmp_path)!r}), say=print)
s.start(Process(name="child", command=(sys.executable, "-c", {FOREVER!r})))
print(s.children["child"].popen.pid, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
