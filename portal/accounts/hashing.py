"""Password hashes, a few at a time: each is made to take a core for a fifth of a second."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from portal.accounts.errors import TooBusy

AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))
WAITING = 2  # for each of those at once; whoever comes then is not waited for
PATIENCE_S = 1.0


class Turns:
    """So many at once, and a short queue: threads that wait could answer others."""

    def __init__(
        self, at_once: int = AT_ONCE, waiting: int = WAITING, patience_s: float = PATIENCE_S
    ) -> None:
        self._room = threading.BoundedSemaphore(at_once * (1 + waiting))
        self._turn = threading.BoundedSemaphore(at_once)
        self._patience_s = patience_s

    @contextmanager
    def take(self) -> Iterator[None]:
        """Raises TooBusy."""
        if not self._room.acquire(blocking=False):
            raise TooBusy("Too many people sign in at this moment; try again shortly.")
        try:
            if not self._turn.acquire(timeout=self._patience_s):
                raise TooBusy("Too many people sign in at this moment; try again shortly.")
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._room.release()


turns = Turns()


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's own, as it stands in the database; checking a password and setting one both pass here."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with turns.take():
            return super().encode(password, salt, iterations)
