"""Notes of clients: each request with what they know of its effect."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Known = Literal["ok", "failed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One request of a client.

    `known`: it had its effect, it had none, or its effect is unknown (no answer, or a 5xx).
    """

    op: str
    known: Known
    job: str = ""
    key: str = ""
    shape: str = ""
    code: int = 0
    took_s: float = 0.0
    at: float = field(default_factory=time.time)


class Notebook:
    """Written by all clients at once."""

    def __init__(self) -> None:
        self._lock, self._notes = threading.Lock(), list[Note]()

    def add(self, note: Note) -> None:
        with self._lock:
            self._notes.append(note)

    def all(self) -> list[Note]:
        with self._lock:
            return list(self._notes)

    def counts(self) -> dict[str, Counter[str]]:
        """By operation: how often its effect was ok, failed and unknown."""
        found: dict[str, Counter[str]] = {}
        for note in self.all():
            found.setdefault(note.op, Counter())[note.known] += 1
        return found

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(note) for note in self.all()]
