"""Hints to the workers, sent by task name after commit: "look now", and nothing else.

Losing one costs a second, since beat ticks anyway; so publishing gets a short time-out and never fails
the request that sent it.
"""

from __future__ import annotations

import logging
import time

from celery import current_app
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, transaction
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

log = logging.getLogger(__name__)
QUIET_S = 5.0  # after a failure: a stuck broker must not slow down every request
_quiet_until = 0.0


def tick() -> None:
    """Ask the scheduling loop to look now. Hints that are asked for before the next look are one."""
    transaction.on_commit(lambda: _send("scheduler.tasks.tick", "control", newest_tick=True))


def refresh_options() -> None:
    """Ask for options to be computed anew for jobs whose options are stale."""
    _after_commit("scheduler.tasks.refresh_options", "work")


def learn() -> None:
    """Ask the predictor's training to see whether there is enough that is new."""
    _after_commit("knowledge.tasks.train", "work")


def simulate() -> None:
    """Ask for the next piece of a simulation that waits."""
    _after_commit("scheduler.tasks.simulate", "work")


def calibrate() -> None:
    """Ask for what is due in calibrations of nodes."""
    _after_commit("scheduler.tasks.calibrate", "work")


def _after_commit(task: str, queue: str) -> None:
    transaction.on_commit(lambda: _send(task, queue))


def _newest_tick() -> int:
    """The number of the tick that was the last to begin: it may have looked too early for this hint."""
    epoch = apps.get_model("scheduler", "Epoch")
    return epoch._default_manager.values_list("number", flat=True).first() or 0


def _send(task: str, queue: str, *, newest_tick: bool = False) -> None:
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return
    try:
        given = {"after": _newest_tick()} if newest_tick else {}
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
                task, kwargs=given, queue=queue, expires=5, connection=connection, retry=False
            )
    except (KombuError, RedisError, OSError, DatabaseError) as away:
        _quiet_until = time.monotonic() + QUIET_S
        log.warning("hint not sent", extra={"task": task, "reason": str(away)})
