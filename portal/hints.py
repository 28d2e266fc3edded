"""Messages that wake workers, sent by task name after commit.

Losing one costs a second, since beat sends the same; so publishing gets a short time-out and
never fails the request that sent it. A request or a tick that changes many rows sends one of
each kind, at its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, transaction
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

log = logging.getLogger(__name__)
RETRY_AFTER_S = 5.0  # a broker that failed must not slow down every request
no_try_before = 0.0


class Hint(NamedTuple):
    """A task to look now; `given`: makes its arguments when it is sent."""

    task: str
    queue: str
    given: Callable[[], Mapping[str, Any]] = dict


_gathered: ContextVar[dict[str, Hint] | None] = ContextVar("gathered hints", default=None)  # by task


@contextmanager
def merged() -> Iterator[None]:
    """Keep the hints of commits within the block and send one of each kind at its end."""
    if _gathered.get() is not None:
        yield
        return
    gathered: dict[str, Hint] = {}
    mark = _gathered.set(gathered)
    try:
        yield
    finally:
        _gathered.reset(mark)
        for hint in gathered.values():
            _send(hint)


def after_commit(hint: Hint) -> None:
    """Send a hint once the transaction is committed, if it is."""
    transaction.on_commit(lambda: _committed(hint))


def _committed(hint: Hint) -> None:
    gathered = _gathered.get()
    if gathered is None:
        _send(hint)
    else:
        gathered[hint.task] = hint


def _send(hint: Hint) -> None:
    global no_try_before
    if time.monotonic() < no_try_before:
        return
    try:
        given = dict(hint.given())
        with current_app.connection_for_write(
            connect_timeout=settings.HINT_TIMEOUT_S,
            transport_options={
                **settings.CELERY_BROKER_TRANSPORT_OPTIONS,
                "socket_timeout": settings.HINT_TIMEOUT_S,
                "socket_connect_timeout": settings.HINT_TIMEOUT_S,
                "max_retries": 0,
            },
        ) as connection:
            current_app.send_task(
                hint.task, kwargs=given, queue=hint.queue, expires=5, connection=connection, retry=False
            )
    except (KombuError, RedisError, OSError, DatabaseError) as away:
        no_try_before = time.monotonic() + RETRY_AFTER_S
        log.warning("hint not sent", extra={"task": hint.task, "reason": str(away)})
