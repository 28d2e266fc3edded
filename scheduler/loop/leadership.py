"""One row that keeps ticks single; a scheduler that lost it changes nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import F, Q

from portal.clock import database_now
from scheduler.errors import SchedulerReplaced
from scheduler.models import Epoch

LOOKS = 10  # at the database's clock, within the time after which a scheduler may be replaced
log = logging.getLogger(__name__)


def newest() -> int:
    """The number of the tick that was the last to begin."""
    return Epoch.objects.values_list("number", flat=True).first() or 0


def acquire() -> Epoch | None:
    """Return the epoch if no other tick is under way, else None.

    A tick that died is replaced after a while. One that began well after now died before the
    clock was set back.
    """
    now = database_now()
    Epoch.objects.get_or_create(pk=1, defaults={"since": now})
    a_while = timedelta(seconds=settings.TICK_TAKEOVER_S)
    died = Q(since__lt=now - a_while) | Q(since__gt=now + a_while)
    free = Epoch.objects.filter(Q(busy=False) | died, pk=1)
    if not free.update(number=F("number") + 1, busy=True, since=now):
        return None
    epoch = Epoch.objects.get(pk=1)
    epoch.looked_s = time.monotonic()
    return epoch


def hold(epoch: Epoch) -> None:
    """Hold the epoch; to be called first in every transaction of a tick.

    It also serialises the tick against a successor, which learns to a tenth of its patience how long this one
    has done nothing. Raises SchedulerReplaced.
    """
    if time.monotonic() > epoch.looked_s + settings.TICK_TAKEOVER_S / LOOKS:
        epoch.since, epoch.looked_s = database_now(), time.monotonic()
    if not Epoch.objects.filter(pk=epoch.pk, number=epoch.number, busy=True).update(since=epoch.since):
        raise SchedulerReplaced(f"Epoch {epoch.number} is over; another scheduler goes on.")


@contextmanager
def row(epoch: Epoch, *expected: type[Exception], **ids: str) -> Iterator[None]:
    """Open a transaction of the tick for one row.

    An error in it is logged and holds up no other row. Raises SchedulerReplaced, OperationalError when the
    database itself is away, and errors that the caller expects.
    """
    raised: tuple[type[Exception], ...] = (SchedulerReplaced, OperationalError, *expected)
    try:
        with transaction.atomic():
            hold(epoch)
            yield
    except raised:
        raise
    except Exception:
        log.exception("a row was left as it is", extra=ids)


def together(
    epoch: Epoch, jobs: Sequence[str], act: Callable[[Sequence[str]], int], allows: Callable[[], bool]
) -> int:
    """Act on jobs in one transaction of the tick; return the sum of the answers.

    Where that fails each has a transaction of its own, as long as the tick allows for more, so that none
    holds up others. Raises SchedulerReplaced, and OperationalError when the database itself is away.
    """
    if len(jobs) > 1:
        try:
            with transaction.atomic():
                hold(epoch)
                return act(jobs)
        except (SchedulerReplaced, OperationalError):
            raise
        except Exception:
            log.info("jobs are looked at one by one", exc_info=True)
    done = 0
    for job in jobs:
        if len(jobs) == 1 or allows():
            with row(epoch, job=job):
                done += act([job])
    return done


def release(epoch: Epoch) -> None:
    """End the tick and keep what it knows; nothing if another scheduler took over."""
    Epoch.objects.filter(pk=epoch.pk, number=epoch.number).update(
        busy=False,
        last_tick_at=database_now(),
        ticks=F("ticks") + 1,
        memory=epoch.memory,
        round_at=epoch.round_at,
        **{name: getattr(epoch, name) for name in Epoch.REACHABILITY},
    )
