"""Faults of nodes and portal hosts: bad lines, full disks, wrong clocks.

A TCP proxy, a byte limit on files and a settable clock take the place of a network, a disk and
a system clock that only root could disturb.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType

import psutil

from tests.chaos import skewed
from tests.chaos.cluster import Cluster

Effect = Callable[[Cluster, str], contextlib.AbstractContextManager[None]]
SLOW_S, SLOW_BYTES_PER_S = 0.4, 150_000
PORTAL_FULL_AT_BYTES = 4096  # some files still fit


@contextlib.contextmanager
def cut(cluster: Cluster, node: str) -> Iterator[None]:
    """Connections are reset."""
    cluster.proxies.cut(node)
    try:
        yield
    finally:
        cluster.proxies[node].undisturbed()


@contextlib.contextmanager
def _line(cluster: Cluster, node: str, **quality: float | bool) -> Iterator[None]:
    for name, value in quality.items():
        setattr(cluster.proxies[node], name, value)
    try:
        yield
    finally:
        cluster.proxies[node].undisturbed()


silent_cut: Effect = partial(_line, holds=True)  # what was sent arrives afterwards, late
slow_line: Effect = partial(_line, delay_s=SLOW_S, bytes_per_s=SLOW_BYTES_PER_S)
lost_answers: Effect = partial(_line, loses_answers=True)


@contextlib.contextmanager
def said_again(cluster: Cluster, node: str) -> Iterator[None]:
    """Old requests come once more, word for word."""
    cluster.proxies.say_again(node)
    yield


@contextlib.contextmanager
def disk_full(cluster: Cluster, target: str) -> Iterator[None]:
    """Let no file of a target's processes grow beyond a limit.

    The limit holds for the processes that run now and for those that they start.
    """
    stack = cluster.stack
    leader = psutil.Process(stack[target].popen.pid)
    processes = [leader, *leader.children(recursive=True), *stack.trainings(target)]
    limited = list(_limited(processes, PORTAL_FULL_AT_BYTES if target == "web" else 0))
    try:
        yield
    finally:
        for process, before in limited:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.rlimit(psutil.RLIMIT_FSIZE, before)
        with contextlib.suppress(psutil.NoSuchProcess):  # and what was started meanwhile
            unlimited = [*leader.children(recursive=True), *stack.trainings(target)]
            list(_limited(unlimited, psutil.RLIM_INFINITY))


def _limited(
    processes: Sequence[psutil.Process], limit_bytes: int
) -> Iterator[tuple[psutil.Process, tuple[int, int]]]:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            before = process.rlimit(psutil.RLIMIT_FSIZE)
            process.rlimit(psutil.RLIMIT_FSIZE, (limit_bytes, before[1]))
            yield process, before


@contextlib.contextmanager
def _clock(cluster: Cluster, target: str, seconds: float, by: ModuleType = skewed) -> Iterator[None]:
    """Restart the target's process with a clock that is off.

    At the end it is restarted with the true clock.
    """
    stack, name = cluster.stack, cluster.process(target)
    child = stack[name]
    true, python_m = child.process, child.process.command.index("-m")
    before, module = true.command[: python_m + 1], true.command[python_m + 1 :]
    stack.kill(name)
    child.process = replace(true, command=(*before, by.__name__, f"{seconds:g}", *module))
    child.start()
    try:
        yield
    finally:
        stack.kill(name)
        child.process = true
        child.start()


clock_behind: Effect = partial(_clock, seconds=-90)
clock_ahead: Effect = partial(_clock, seconds=86_400)
