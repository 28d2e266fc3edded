"""Time zones of readers.

A person's own choice counts, else their browser's, else the portal's TIME_ZONE.
"""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

from django.utils import timezone

from portal.accounts.models import User

COOKIE = "time_zone"  # static/js/times.js writes what the browser says
NO_PLACES = frozenset({"Factory", "localtime"})


@cache
def names() -> tuple[str, ...]:
    """All zones that can be chosen; finding them opens many files."""
    return tuple(sorted(zoneinfo.available_timezones() - NO_PLACES))


@cache
def _by_spelling() -> dict[str, str]:
    return {name.casefold(): name for name in names()}


def named(text: str) -> ZoneInfo | None:
    """Return the zone of this name; None where there is none.

    Capitals do not matter, nor whether words have spaces or underscores between them.
    """
    name = _by_spelling().get("_".join(text.split()).casefold())
    return ZoneInfo(name) if name else None


def zone_for(own: str, browsers: str) -> ZoneInfo | None:
    """Return the zone in which a reader is told times; None: the portal's.

    Both names may be anything.
    """
    return named(own) or named(browsers)


def local(moment: datetime) -> datetime:
    """Return the moment by the reader's clock.

    At either end of the calendar, where it has no date there, it stays in UTC.
    """
    try:
        return timezone.localtime(moment)
    except OverflowError:
        return moment.astimezone(UTC)


def offset(moment: datetime) -> str:
    """Return how far the moment's clock is from UTC.

    For example `UTC+05:30`, or `UTC` where it is not.
    """
    passed = moment.utcoffset()
    minutes = round(passed.total_seconds() / 60) if passed else 0
    if not minutes:
        return "UTC"
    return f"UTC{'+' if minutes > 0 else '-'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def choose_time_zone(*, user: User, zone: ZoneInfo | None) -> None:
    """Tell the person times in this zone from now on; None: in their browser's."""
    User.objects.filter(pk=user.pk).update(time_zone=zone.key if zone else "")
