"""Calls that happen at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

from scheduler.errors import SchedulerError


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
