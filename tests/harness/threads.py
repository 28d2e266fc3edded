"""Calls that happen at the same moment, and servers in a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import Any

from django.db import connection

from scheduler.errors import SchedulerError


@contextmanager
def served(server: BaseServer) -> Iterator[None]:
    """Let a server answer until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Run all calls behind one barrier, each on its own connection.

    Errors are returned, not raised.
    """
    barrier = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def run(index: int, call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            answers[index] = call()
        except SchedulerError as refused:
            answers[index] = refused
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
