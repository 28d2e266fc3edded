"""Database and broker: away, stopped in mid-sentence, locked, emptied."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import psutil
import psycopg
import redis

from tests.chaos.cluster import Cluster

LOCK = "LOCK TABLE scheduler_job, scheduler_node IN ACCESS EXCLUSIVE MODE"


@contextlib.contextmanager
def database_away(cluster: Cluster, _: str) -> Iterator[None]:
    """As after a power cut, until it is started again."""
    cluster.postgres.stop()
    try:
        yield
    finally:
        cluster.postgres.start()


@contextlib.contextmanager
def database_stalled(cluster: Cluster, _: str) -> Iterator[None]:
    """SIGSTOP to all its processes: connections stay open and nothing answers."""
    server = psutil.Process(cluster.postgres.pid)
    processes = [server, *server.children(recursive=True)]
    _each(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        _each(processes, signal.SIGCONT)


def _each(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@contextlib.contextmanager
def database_locked(cluster: Cluster, _: str) -> Iterator[None]:
    """Lock the tables that everything needs, from a foreign connection.

    Without effect if the locks are not granted soon.
    """
    with psycopg.connect(cluster.postgres.url, options="-c lock_timeout=2000") as stranger:
        with contextlib.suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            stranger.execute(LOCK)
        yield
        with contextlib.suppress(psycopg.Error):
            stranger.rollback()


@contextlib.contextmanager
def broker_killed(cluster: Cluster, _: str) -> Iterator[None]:
    cluster.stack.kill("broker")
    try:
        yield
    finally:
        cluster.stack.start_broker()


@contextlib.contextmanager
def broker_emptied(cluster: Cluster, _: str) -> Iterator[None]:
    redis.Redis(unix_socket_path=str(cluster.stack.socket), socket_timeout=5).flushall()
    yield
