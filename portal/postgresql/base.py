"""Django's PostgreSQL backend, on which no wait is for ever.

This holds even for a server that is stopped or cut off. PostgreSQL's own time-outs need a
server that runs, and those of the kernel a peer that acknowledges nothing: the kernel of a
stopped server goes on acknowledging. So the client gives up (docs/adr/0013).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import BaseTzLoader, IsolationLevel
from psycopg import errors
from psycopg.abc import RV, Buffer, PQGen

from portal.postgresql.breaker import Breaker
from portal.serving.queued import slow_s, waited_s

PATIENCE = "patience_s"
HURRY_S = 0.5  # statements that take less are not slow
breaker = Breaker(pause_s=2.0)


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that closes itself when the server is silent.

    It waits `patience_s` seconds for an answer; None: for ever. The slow statements of one request share
    these seconds, with its wait for a thread. Raises psycopg.OperationalError, at once while the server is
    known to be silent.
    """

    patience_s: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        patience_s = self.patience_s if timeout is None else timeout
        if patience_s is None:
            return super().wait(gen, interval)
        if not breaker.admits():
            self.close()
            raise silence()
        if breaker.open:
            patience_s = min(patience_s, breaker.pause_s)
        # A request that waited before has less time left; that it runs out says nothing of the server.
        waited = waited_s.get() + (slow_s.get() or 0.0)
        hurry = waited > HURRY_S
        if hurry:
            patience_s = max(HURRY_S, patience_s - waited)
        began = time.monotonic()
        try:
            answer = super().wait(gen, interval, patience_s)
        except errors._WaitTimeout:
            self.close()
            if not hurry:
                breaker.silent()
            raise silence() from None
        except errors.Error:
            if not self.broken:
                breaker.answered()
            raise
        finally:
            _note(time.monotonic() - began)
        breaker.answered()
        return answer


def _note(took_s: float) -> None:
    before = slow_s.get()
    if before is not None and took_s > HURRY_S:
        slow_s.set(before + took_s)


def silence() -> psycopg.OperationalError:
    return psycopg.OperationalError("the database does not answer")


class TimeLoader(BaseTzLoader):  # type: ignore[misc]  # Django's class has no types
    """PostgreSQL's text of a time in UTC, read by the standard library.

    Django's loader, in Python, takes ten times as long: of a tick over 10,000 jobs that is a tenth.
    """

    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:  # Python has no such time, as Django's loader says in words
            return cast(datetime, super().load(data))


class DatabaseWrapper(base.DatabaseWrapper):
    """OPTIONS has one entry more: how long to wait for an answer, in seconds."""

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        params.pop(PATIENCE, None)
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> BoundedConnection:
        self.isolation_level = IsolationLevel.READ_COMMITTED
        patience_s = self.settings_dict["OPTIONS"].get(PATIENCE)
        if patience_s is not None and not breaker.admits():
            raise silence()
        try:
            made = BoundedConnection.connect(**conn_params)
        except errors.ConnectionTimeout:
            breaker.silent()
            raise
        breaker.answered()
        made.adapters.register_loader("timestamptz", TimeLoader)
        made.patience_s = patience_s
        return made
