"""The time range of a page, from its address and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar

from django.core.cache import cache
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from portal.accounts.models import User
from portal.accounts.time_zones import local
from scheduler.selectors.analysis.period import Period, before

T = TypeVar("T")

RANGES: dict[str, timedelta | None] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "all": None,
}
DEFAULT = "7d"
REMEMBERED_S = 60
WEEK = timedelta(days=7)
LONGEST = len("2026-11-01T12:30:00.000000+01:00")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPeriod:
    """The period to show.

    name: empty for a period given by dates.
    errors: the parts that were not understood.
    """

    period: Period
    name: str
    errors: tuple[str, ...] = ()

    @property
    def dates(self) -> tuple[date, date]:
        """First and last day, as the form shows them."""
        last = self.period.end - timedelta(microseconds=1)
        return local(self.period.start).date(), local(last).date()


def present() -> datetime:
    """Return the end of the current minute.

    So equal ranges asked for within a minute are equal periods.
    """
    return timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=1)


def remembered(page: str, user: User, period: Period, make: Callable[[], T]) -> T:
    """Return the answer of `make` for this reader, zone and period.

    It is made once a minute, however many look.
    """
    reader = "all" if user.is_admin else user.pk
    zone = timezone.get_current_timezone_name()
    key = f"{page}:{reader}:{zone}:{period.start.timestamp()}:{period.end.timestamp()}"
    found: T | None = cache.get(key)
    if found is None:
        found = make()
        cache.set(key, found, REMEMBERED_S)
    return found


def chosen(query: Mapping[str, str], *, now: datetime, first: Callable[[], datetime | None]) -> ChosenPeriod:
    """Return the period that the address names.

    It is `?range=24h`, or `?from=2026-11-01&to=2026-11-07` (both included). `first` is asked for
    the oldest moment only when all of history is wanted.
    """
    if query.get("from") or query.get("to"):
        return _between(query, now)
    name = query.get("range") or DEFAULT
    if name not in RANGES:
        problem = f"Unknown range {name[:40]!r}; use one of {', '.join(RANGES)}."
        return ChosenPeriod(period=_back(RANGES[DEFAULT], now, first), name=DEFAULT, errors=(problem,))
    return ChosenPeriod(period=_back(RANGES[name], now, first), name=name)


def _back(length: timedelta | None, now: datetime, first: Callable[[], datetime | None]) -> Period:
    if length is None:
        oldest = first() or now
        length = max(now - oldest, timedelta(hours=1))
    return Period(now - length, now)


def _between(query: Mapping[str, str], now: datetime) -> ChosenPeriod:
    errors = []
    moments: dict[str, datetime | None] = {}
    for name in ("from", "to"):
        raw = query.get(name, "")
        moments[name] = _moment(raw, end=name == "to")
        if raw and moments[name] is None:
            errors.append(f"{name} must be a date such as {now:%Y-%m-%d}, or a date and a time.")
    end = min(moments["to"] or now, now)
    start = moments["from"] or before(end, WEEK)
    if not errors and start >= end:
        errors.append("The start (from) must lie before the end (to) and in the past.")
    if errors:
        return ChosenPeriod(period=Period(now - WEEK, now), name=DEFAULT, errors=tuple(errors))
    return ChosenPeriod(period=Period(start, end), name="")


def _moment(raw: str, *, end: bool) -> datetime | None:
    """A day counts from its first moment, or as `end` up to its last one."""
    if len(raw) > LONGEST:
        return None
    try:
        moment = parse_datetime(raw)
        if day := parse_date(raw):
            moment = datetime.combine(day + timedelta(days=1 if end else 0), time.min)
        aware = moment and (moment if timezone.is_aware(moment) else timezone.make_aware(moment))
        return aware and aware.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
