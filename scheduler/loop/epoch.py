"""One row that keeps ticks single; a scheduler that lost it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Now

from scheduler.errors import SchedulerReplaced
from scheduler.models import Epoch


def acquire(now: datetime) -> Epoch | None:
    """The epoch, if nobody else is in the middle of a tick; one that died is replaced after a while."""
    Epoch.objects.get_or_create(pk=1, defaults={"since": now})
    overdue = now - timedelta(seconds=settings.TICK_TAKEOVER_S)
    free = Epoch.objects.filter(Q(busy=False) | Q(since__lt=overdue), pk=1)
    if not free.update(number=F("number") + 1, busy=True, since=Now()):
        return None
    return Epoch.objects.get(pk=1)


def hold(epoch: Epoch) -> None:
    """Call first in every transaction of a tick: it also serialises against a successor.

    Raises SchedulerReplaced.
    """
    if not Epoch.objects.filter(pk=epoch.pk, number=epoch.number, busy=True).update(since=Now()):
        raise SchedulerReplaced(f"Epoch {epoch.number} is over; another scheduler goes on.")


def release(epoch: Epoch, memory: Mapping[str, Any]) -> None:
    """End the tick and keep the policy's memory; nothing if another scheduler took over."""
    Epoch.objects.filter(pk=epoch.pk, number=epoch.number).update(
        busy=False, last_tick_at=Now(), ticks=F("ticks") + 1, memory=dict(memory)
    )
