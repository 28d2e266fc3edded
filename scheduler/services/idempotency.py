"""Creations under a client's key.

There is one object and one answer, however often it is asked for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db import OperationalError, connection, models, transaction

from portal.accounts.models import User
from scheduler.errors import Conflict, KeyInUse, KeyReused, NotFound
from scheduler.models import IdempotencyKey

KEPT_FOR = timedelta(hours=48)
TWIN_WAITS_MS = 2000  # for the transaction of a request with the same key
_NOT_A_KEY = "\x1f"  # clients' keys are printable
LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's answer after the longest wait for a lock

Created = TypeVar("Created", bound=models.Model)
# Opens the transaction of a creation, and yields a function that is given the object before that ends.
Creation = Callable[[], AbstractContextManager[Callable[[Any], None]]]


@contextmanager
def unkeyed() -> Iterator[Callable[[Any], None]]:
    """The transaction of a creation that nobody asks for again."""
    with transaction.atomic():
        yield lambda _: None


def once(
    *,
    owner: User,
    route: str,
    key: str,
    body_digest: str,
    now: datetime,
    create: Callable[[Creation], Created],
    load: Callable[[str], Created],
) -> tuple[Created, bool]:
    """The object made under this key, and whether it was made now.

    `create` asks what takes long, then makes the object in the transaction that it is given. The key is
    reserved in there, so both are written or neither is. `load` finds an object by its id.
    Raises KeyReused (same key, other body), KeyInUse (a twin is still at it) and NotFound (what was made is
    gone).
    """
    request = _Asked(owner=owner, route=route, key=key, body_digest=body_digest, now=now)
    if made := request.answer():
        return _loaded(load, made), False
    try:
        return create(request.creation), True
    except _AnsweredMeanwhile as twin:
        return _loaded(load, twin.object_id), False
    except Conflict:
        if made := request.answer():  # what stands in the way is the twin's
            return _loaded(load, made), False
        raise


def once_for_retries(
    *,
    owner: User,
    route: str,
    token: int,
    body_digest: str,
    retry: bool,
    window: timedelta,
    now: datetime,
    create: Callable[[Creation], Created],
    load: Callable[[str], Created],
) -> tuple[Created, bool]:
    """The object of a client that has no key, but counts its repetitions.

    A retry gets what the same token made with the same body within the window, at an address. A first request
    is an intent of its own, unless a retry of it was quicker: its client gave up waiting and asked again
    before this was done. `now` is when the request came. Raises KeyInUse.
    """
    key = f"{_NOT_A_KEY}{token} {body_digest}"
    asked = _Retried(
        owner=owner, route=route, key=key, body_digest=body_digest, now=now, retry=retry, window=window
    )
    if made := asked.answer():
        return _loaded(load, made), False
    try:
        return create(asked.creation), True
    except _AnsweredMeanwhile as twin:
        return _loaded(load, twin.object_id), False


def _loaded(load: Callable[[str], Created], object_id: str) -> Created:
    """What an earlier request made.

    Raises NotFound where it is gone, or not this token's to see.
    """
    try:
        return load(object_id)
    except (ObjectDoesNotExist, NotFound) as gone:
        message = "What this request made at first is not here any more; use another Idempotency-Key."
        raise NotFound(message) from gone


class _AnsweredMeanwhile(Exception):
    def __init__(self, object_id: str) -> None:
        self.object_id = object_id
        super().__init__(object_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    owner: User
    route: str
    key: str
    body_digest: str
    now: datetime

    def answer(self) -> str:
        """The id of what was made under this key; empty if nothing was. Raises KeyReused."""
        return self._check(self._rows().first())

    @contextmanager
    def creation(self) -> Iterator[Callable[[Any], None]]:
        """The transaction of the creation, in which the key is reserved."""
        with ExitStack() as stack:
            with _short_waits():
                stack.enter_context(transaction.atomic())
                row = self._reserve()
            if answer := self._check(row):
                raise _AnsweredMeanwhile(answer)
            yield lambda made: self.note(row, made)

    def _rows(self) -> models.QuerySet[IdempotencyKey]:
        return IdempotencyKey.objects.filter(owner=self.owner, route=self.route, key=self.key)

    def _reserve(self) -> IdempotencyKey:
        row = IdempotencyKey(
            owner=self.owner,
            route=self.route,
            key=self.key,
            body_digest=self.body_digest,
            created_at=self.now,
        )
        on_postgres = connection.vendor == "postgresql"
        if on_postgres:
            _execute(f"SET LOCAL lock_timeout = {TWIN_WAITS_MS}")
        # A twin is waited for here. Unlike a violated constraint this leaves the transaction whole.
        IdempotencyKey.objects.bulk_create([row], ignore_conflicts=True)
        reserved = self._rows().select_for_update().get()
        if on_postgres:
            _execute("SET LOCAL lock_timeout TO DEFAULT")
        return reserved

    def _check(self, row: IdempotencyKey | None) -> str:
        if row is not None and row.body_digest != self.body_digest:
            raise KeyReused("This Idempotency-Key was used with another body; use a new key.")
        return row.object_id if row else ""

    def note(self, row: IdempotencyKey, made: models.Model) -> None:
        row.object_id = str(made.pk)
        row.save(update_fields=["object_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Retried(_Asked):
    """A first request or a retry; its row tells of the newest object made so."""

    retry: bool
    window: timedelta

    def _check(self, row: IdempotencyKey | None) -> str:
        if row is None or not row.object_id:
            return ""
        if self.retry:
            return row.object_id if row.created_at > self.now - self.window else ""
        return row.object_id if row.by_retry and row.created_at >= self.now else ""

    def note(self, row: IdempotencyKey, made: models.Model) -> None:
        row.object_id, row.created_at, row.by_retry = str(made.pk), self.now, self.retry
        row.save(update_fields=["object_id", "created_at", "by_retry"])


@contextmanager
def _short_waits() -> Iterator[None]:
    """Raise KeyInUse where a lock is waited for in vain.

    It is held by a twin, or on SQLite by any other writer.
    """
    on_sqlite = connection.vendor == "sqlite"
    if on_sqlite:
        _execute(f"PRAGMA busy_timeout = {TWIN_WAITS_MS}")
    try:
        yield
    except OperationalError as failed:
        if not _waited_for_a_lock(failed.__cause__):
            raise
        raise KeyInUse("A request with this Idempotency-Key is still running; ask again shortly.") from failed
    finally:
        if on_sqlite:
            usual_s = connection.settings_dict["OPTIONS"].get("timeout", 5)
            _execute(f"PRAGMA busy_timeout = {round(usual_s * 1000)}")


def _waited_for_a_lock(cause: BaseException | None) -> bool:
    if isinstance(cause, sqlite3.OperationalError):
        return cause.sqlite_errorcode == sqlite3.SQLITE_BUSY
    return getattr(cause, "sqlstate", "") == LOCK_NOT_AVAILABLE


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def forget_old_keys(*, now: datetime) -> int:
    """Delete keys that are too old to be asked for again."""
    return IdempotencyKey.objects.filter(created_at__lt=now - KEPT_FOR).delete()[0]
