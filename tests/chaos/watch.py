"""The observer of the portal, which looks twice a second.

It notes whether the portal answers and ticks, and which nodes it has heard of.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
import psycopg

EVERY_S = 0.5
LOOK = """
SELECT (SELECT ticks FROM scheduler_epoch), name, state, extract(epoch FROM last_seen_at)
FROM scheduler_node WHERE removed_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """One reading of the database.

    It holds the ticks so far and, for each node, its state and when it was last heard of.
    """

    at: float
    ticks: int
    nodes: Mapping[str, tuple[str, float]]


@dataclass
class Timeline:
    """Everything that was observed.

    Times are seconds since the epoch, by this machine's one clock.
    """

    answers: list[tuple[float, bool]] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)


class Watch:
    """Two threads, as a portal that hangs must not keep us from looking at the rows."""

    def __init__(self, url: str, token: str, database_url: str) -> None:
        self.timeline, self.done = Timeline(), threading.Event()
        self.url, self.database_url = url, database_url
        self.headers = {"Authorization": f"Bearer {token}"}
        self.threads = [threading.Thread(target=look) for look in (self._ask, self._read)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()

    def _ask(self) -> None:
        with httpx.Client(base_url=self.url, headers=self.headers, trust_env=False, timeout=3) as client:
            while not self.done.wait(EVERY_S):
                try:
                    good = client.get("/api/me/").is_success
                except httpx.TransportError:
                    good = False
                self.timeline.answers.append((time.time(), good))

    def _read(self) -> None:
        connection: psycopg.Connection | None = None
        options = "-c statement_timeout=2000"
        while not self.done.wait(EVERY_S):
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(
                        self.database_url, autocommit=True, connect_timeout=2, options=options
                    )
                found = connection.execute(LOOK).fetchall()
            except psycopg.Error:
                connection = None
                continue
            if found:
                nodes = {name: (state, float(seen)) for _, name, state, seen in found}
                self.timeline.rows.append(Rows(time.time(), found[0][0] or 0, nodes))
        if connection is not None:
            connection.close()
