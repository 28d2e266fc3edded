"""Costly work a few at a time: a short queue for it, and no thread waits for long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from portal.accounts.errors import TooBusy


class Turns:
    """`at_once` of one process at a time, `waiting` more for each of them, for `patience_s` at most."""

    def __init__(self, *, at_once: int, waiting: int, patience_s: float, busy: str) -> None:
        """busy: what to tell who gets no turn."""
        self._room = threading.BoundedSemaphore(at_once * (1 + waiting))
        self._turn = threading.BoundedSemaphore(at_once)
        self._patience_s, self._busy = patience_s, busy

    @contextmanager
    def take(self) -> Iterator[None]:
        """Raises TooBusy."""
        if not self._room.acquire(blocking=False):
            raise TooBusy(self._busy)
        try:
            if not self._turn.acquire(timeout=self._patience_s):
                raise TooBusy(self._busy)
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._room.release()
