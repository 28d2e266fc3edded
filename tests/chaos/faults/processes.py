"""Processes of the portal and of nodes: killed, paused, asked to stop."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import psutil

from tests.chaos.cluster import Cluster


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
    """Stop the process and its children with SIGSTOP, even within a transaction."""
    stack, name = cluster.stack, cluster.process(target)
    stack.signal_group(name, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            stack.signal_group(name, signal.SIGCONT)


@contextlib.contextmanager
def replaced(cluster: Cluster, target: str) -> Iterator[None]:
    """Ask the process to stop, as in an upgrade, and start it again at the end.

    It is killed first if it has not ended by then.
    """
    stack, name = cluster.stack, cluster.process(target)
    stack[name].popen.terminate()
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            stack.kill(name)
        stack[name].start()


@contextlib.contextmanager
def training_killed(cluster: Cluster, node: str) -> Iterator[None]:
    cluster.stack.kill_trainings(node)
    yield


@contextlib.contextmanager
def training_paused(cluster: Cluster, node: str) -> Iterator[None]:
    trainings = cluster.stack.trainings(node)
    _each(trainings, signal.SIGSTOP)
    try:
        yield
    finally:
        _each(trainings, signal.SIGCONT)


def _each(trainings: list[psutil.Process], number: signal.Signals) -> None:
    for training in trainings:
        with contextlib.suppress(psutil.NoSuchProcess):
            training.send_signal(number)


@contextlib.contextmanager
def agent_and_training_killed(cluster: Cluster, node: str) -> Iterator[None]:
    with killed(cluster, node):
        cluster.stack.kill_trainings(node)
        yield


@contextlib.contextmanager
def joining(cluster: Cluster, node: str) -> Iterator[None]:
    """A new node, whose first answers are lost."""
    cluster.proxies[node].loses_answers = True
    cluster.add_node(node)
    try:
        yield
    finally:
        cluster.proxies[node].undisturbed()
