"""Hints to the workers to look now, sent by task name after commit.

Losing one costs a second, since beat ticks anyway; so publishing gets a short time-out and
never fails the request that sent it. A request or a tick that changes many rows sends one of
each kind, at its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from celery import current_app
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, transaction
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

log = logging.getLogger(__name__)
RETRY_AFTER_S = 5.0  # a broker that failed must not slow down every request
TICK = "scheduler.tasks.tick"
no_try_before = 0.0
_gathered: ContextVar[dict[str, str] | None] = ContextVar("gathered hints", default=None)  # task -> queue


@contextmanager
def merged() -> Iterator[None]:
    """Keep the hints of commits within the block and send one of each kind at its end."""
    if _gathered.get() is not None:
        yield
        return
    gathered: dict[str, str] = {}
    mark = _gathered.set(gathered)
    try:
        yield
    finally:
        _gathered.reset(mark)
        for task, queue in gathered.items():
            _send(task, queue)


def tick() -> None:
    """Ask the scheduling loop to look now.

    Hints that are asked for before the next look are merged into one.
    """
    _after_commit(TICK, "control")


def refresh_options() -> None:
    """Ask for options to be computed anew for jobs whose options are stale."""
    _after_commit("scheduler.tasks.refresh_options", "work")


def learn() -> None:
    """Ask the predictor's training to see whether there is enough that is new."""
    _after_commit("knowledge.tasks.train", "work")


def read_scripts() -> None:
    """Ask for a language model to read a script that waits for it."""
    _after_commit("knowledge.tasks.read_scripts", "work")


def explain_failures() -> None:
    """Ask for the causes of new failures to be read from their logs."""
    _after_commit("scheduler.tasks.explain_failures", "work")


def forecast_starts() -> None:
    """Ask for the queue to be played ahead: a plan has changed."""
    _after_commit("scheduler.tasks.forecast_starts", "predict")


def find_changes() -> None:
    """Ask for the changes that would help a waiting job that somebody looks at."""
    _after_commit("scheduler.tasks.find_changes", "predict")


def answer_starts() -> None:
    """Ask for the next question about the start of a job to be answered."""
    _after_commit("scheduler.tasks.answer_starts", "predict")


def simulate() -> None:
    """Ask for the next piece of a simulation that waits."""
    _after_commit("scheduler.tasks.simulate", "work")


def markets() -> None:
    """Ask for markets to be looked after: nodes are wanted, or go back."""
    _after_commit("scheduler.tasks.markets", "work")


def calibrate() -> None:
    """Ask for what is due in calibrations of nodes."""
    _after_commit("scheduler.tasks.calibrate", "work")


def _after_commit(task: str, queue: str) -> None:
    transaction.on_commit(lambda: _committed(task, queue))


def _committed(task: str, queue: str) -> None:
    gathered = _gathered.get()
    if gathered is None:
        _send(task, queue)
    else:
        gathered[task] = queue


def newest_tick() -> int:
    """Return the number of the tick that was the last to begin.

    It may have looked too early for this hint.
    """
    epoch = apps.get_model("scheduler", "Epoch")
    return epoch._default_manager.values_list("number", flat=True).first() or 0


def _send(task: str, queue: str) -> None:
    global no_try_before
    if time.monotonic() < no_try_before:
        return
    try:
        given = {"after": newest_tick()} if task == TICK else {}
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
        no_try_before = time.monotonic() + RETRY_AFTER_S
        log.warning("hint not sent", extra={"task": task, "reason": str(away)})
