"""What each kind of fault does: begin and end, in the main thread, without waiting for long."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

from tests.chaos.cluster import Cluster
from tests.chaos.plan import Fault

Fault_ = Callable[[Cluster, str], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def killed(cluster: Cluster, target: str) -> Iterator[None]:
    """kill -9; started again at the end. Of an agent the training lives on."""
    stack, name = cluster.stack, cluster.process(target)
    stack.kill(name)
    try:
        yield
    finally:
        stack[name].start()


@contextlib.contextmanager
def paused(cluster: Cluster, target: str) -> Iterator[None]:
    """SIGSTOP to the process and its children, wherever they are: in a transaction, too."""
    stack, name = cluster.stack, cluster.process(target)
    stack.signal_group(name, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            stack.signal_group(name, signal.SIGCONT)


@contextlib.contextmanager
def training_killed(cluster: Cluster, node: str) -> Iterator[None]:
    cluster.stack.kill_trainings(node)
    yield


@contextlib.contextmanager
def agent_and_training_killed(cluster: Cluster, node: str) -> Iterator[None]:
    with killed(cluster, node):
        cluster.stack.kill_trainings(node)
        yield


HOW: dict[str, Fault_] = {
    "web killed": killed,
    "web away, less than a lease": killed,
    "web away, more than a lease": killed,
    "web paused": paused,
    "scheduler killed": killed,
    "worker killed": killed,
    "beat killed": killed,
    "agent killed": killed,
    "agent away, more than a lease": killed,
    "training killed": training_killed,
    "agent and training killed": agent_and_training_killed,
}


def strike(cluster: Cluster, fault: Fault) -> contextlib.AbstractContextManager[None]:
    """The fault, in force while the returned context is entered."""
    return HOW[fault.kind](cluster, fault.target)
