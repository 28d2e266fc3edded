"""Requests that wait for a change.

They hold neither a thread nor a connection to the database.

A view that has nothing new to tell `park`s its request and answers anything, which nobody sees. The worker
keeps the connection, and serves the request again once the sign that the view read has changed, or the time
is over. One thread for all of them reads the signs, with one call a second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from django.db import connections

log = logging.getLogger(__name__)
Subject = Hashable  # what a request waits for a change of
Signs = Callable[[Collection[Any]], Mapping[Any, str]]  # of each subject a text that changes with it
READ_EVERY_S = 1.0
MOST_OF_ONE_ASKER = 50


@dataclass(frozen=True, slots=True)
class Wait:
    """What a request waits for.

    seen: the sign that was read before anything else. asker: who may have so many such requests. until:
    monotonic.
    """

    subject: Subject
    seen: str
    asker: Hashable
    until: float


@dataclass(slots=True)
class Turn:
    """One request, which may be served several times before it is answered.

    first_seen: the sign at the first time. wait: what it waits for now. has_waited: it waits, or did.
    """

    lot: ParkingLot
    began: float = field(default_factory=time.monotonic)
    first_seen: str | None = None
    wait: Wait | None = None
    has_waited: bool = False


# Of the request that this thread serves; None where the server keeps no requests.
turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


def park(subject: Subject, *, seen: str, for_s: float, asker: Hashable) -> bool:
    """Shall the request be served again later? If not, it has to be answered now.

    for_s: since the request came.
    """
    current = turn.get()
    if current is None:
        return False
    if current.first_seen is None:
        current.first_seen = seen
    wait = Wait(subject, seen, asker, current.began + for_s)
    if time.monotonic() >= wait.until or not current.lot.admit(asker):
        return False
    current.wait, current.has_waited = wait, True
    return True


def first_seen() -> str | None:
    """The sign that was read when the request was served first; None at that time."""
    current = turn.get()
    return current.first_seen if current else None


def has_waited() -> bool:
    """Does the request that this thread serves wait, or has it waited before?"""
    current = turn.get()
    return current is not None and current.has_waited


class ParkingLot:
    """The waiting requests of one web process, and the thread that reads for all.

    Beyond `most` of them, or MOST_OF_ONE_ASKER, others are answered at once.
    """

    def __init__(self, *, most: int, signs_of: Signs, wake: Callable[[Any], None]) -> None:
        """wake: told each key whose sign has changed, in the reading thread."""
        self._most, self._signs_of, self._wake = most, signs_of, wake
        self._lock = threading.Lock()
        self._admitted: Counter[Hashable] = Counter()
        self._waits: dict[Any, Wait] = {}
        self._reading = False
        self.closed = False

    def admit(self, asker: Hashable) -> bool:
        """Keep a place for one more request, unless they are too many."""
        with self._lock:
            full = self._admitted.total() >= self._most or self._admitted[asker] >= MOST_OF_ONE_ASKER
            if full or self.closed:
                return False
            self._admitted[asker] += 1
            return True

    def leave(self, key: Any, asker: Hashable) -> None:
        """Give the place back."""
        with self._lock:
            self._waits.pop(key, None)
            self._admitted[asker] -= 1
            if not self._admitted[asker]:
                del self._admitted[asker]

    def watch(self, key: Any, wait: Wait) -> None:
        """Wake the key once the sign of what it waits for is another one."""
        with self._lock:
            self._waits[key] = wait
            if not self._reading:
                self._reading = True
                threading.Thread(target=self._read, name="waits", daemon=True).start()

    def _read(self) -> None:
        while waits := self._left():
            try:
                signs = self._signs_of({wait.subject for wait in waits.values()})
            except Exception:
                log.exception("the signs of what requests wait for could not be read")
            else:
                for key, wait in waits.items():
                    if signs.get(wait.subject) != wait.seen:
                        self._wake(key)
            time.sleep(READ_EVERY_S)

    def _left(self) -> dict[Any, Wait]:
        """Those that wait; the thread ends, and its connection with it, if none does."""
        with self._lock:
            if not self._waits:
                connections.close_all()
                self._reading = False
            return dict(self._waits)
