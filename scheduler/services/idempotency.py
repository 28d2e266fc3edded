"""Creations under a client's key: one object, one answer, however often it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import models, transaction

from portal.accounts.models import User
from scheduler.errors import Conflict, KeyInUse, KeyReused
from scheduler.models import IdempotencyKey

KEPT_FOR = timedelta(hours=48)
# A twin that did not finish within this time has died; nobody waits for it longer.
ABANDONED_AFTER = timedelta(seconds=60)

Created = TypeVar("Created", bound=models.Model)


def once(
    *,
    owner: User,
    route: str,
    key: str,
    body_digest: str,
    now: datetime,
    create: Callable[[Callable[[Created], None]], Created],
    load: Callable[[str], Created],
) -> tuple[Created, bool]:
    """The object made under this key, and whether it was made now.

    `create` gets a function that it must call with the new object inside its own transaction, so that
    object and key are written together; `load` finds an object by its id.
    Raises KeyReused (same key, other body) and KeyInUse (a twin is still at it).
    """
    row = _reserve(owner=owner, route=route, key=key, body_digest=body_digest, now=now)
    if row.object_id:
        return load(row.object_id), False

    def finish(made: Created) -> None:
        # A twin may have taken an abandoned key over: then this creation must not happen.
        if not IdempotencyKey.objects.filter(pk=row.pk, object_id="").update(object_id=str(made.pk)):
            raise Conflict("The key was answered meanwhile; ask again with the same key.")

    try:
        return create(finish), True
    except BaseException:
        IdempotencyKey.objects.filter(pk=row.pk, object_id="").delete()
        raise


@transaction.atomic
def _reserve(*, owner: User, route: str, key: str, body_digest: str, now: datetime) -> IdempotencyKey:
    row, made = IdempotencyKey.objects.select_for_update().get_or_create(
        owner=owner, route=route, key=key, defaults={"body_digest": body_digest, "created_at": now}
    )
    if made:
        return row
    if row.body_digest != body_digest:
        raise KeyReused("This Idempotency-Key was used with another body; use a new key.")
    if not row.object_id:
        if now - row.created_at < ABANDONED_AFTER:
            raise KeyInUse("A request with this Idempotency-Key is still running; ask again shortly.")
        IdempotencyKey.objects.filter(pk=row.pk).update(created_at=now)
    return row


def forget_old_keys(*, now: datetime) -> int:
    """Delete keys that are too old to be asked for again."""
    return IdempotencyKey.objects.filter(created_at__lt=now - KEPT_FOR).delete()[0]
