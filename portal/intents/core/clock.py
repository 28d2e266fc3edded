"""Wall-clock times in a zone.

These are days, hours, and the hours that a clock change skips or doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

MORNING, NOON, EVENING = time(9), time(12), time(18)


class NoSuchDate(ValueError):
    """A day that the calendar does not have."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant, and a note where the clock shows its time never or twice."""

    at: datetime
    note: str = ""


def moment(day: date, clock: time | None, zone: tzinfo) -> Moment:
    """The instant of a day's wall-clock time; None is 24:00.

    A time that a clock change skips or doubles is the later of its two instants. Raises NoSuchDate beyond
    the calendar.
    """
    try:
        if clock is None:
            day, clock = day + timedelta(days=1), time(0)
        both = [datetime.combine(day, clock, zone).replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
        at = max(both).astimezone(zone)
    except OverflowError as far:
        raise NoSuchDate("lies beyond the calendar") from far
    if both[0] == both[1]:
        return Moment(at)
    if at.replace(tzinfo=None) == datetime.combine(day, clock):
        return Moment(at, f"{clock:%H:%M} comes twice that day, as the clocks change; the later one is meant")
    return Moment(at, f"{clock:%H:%M} is skipped that day, as the clocks change; it is {at:%H:%M} then")


def after(now: datetime, seconds: float, zone: tzinfo) -> Moment:
    """The instant so many seconds from now. Raises NoSuchDate beyond the calendar."""
    try:
        return Moment((now.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(zone))
    except OverflowError as far:
        raise NoSuchDate("lies beyond the calendar") from far


def next_weekday(today: date, weekday: int) -> date:
    """The next such day, never today."""
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def day_of_month(today: date, day: int) -> date:
    """The next such day of a month, today or later. Raises NoSuchDate."""
    year, month = today.year, today.month
    for _ in range(12):
        try:
            if (found := date(year, month, day)) >= today:
                return found
        except ValueError:
            pass
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    raise NoSuchDate(f"No month has a day {day}.")


def nearest(today: date, month: int, day: int) -> date:
    """Return that day of the year which lies nearest to today.

    It may lie before or after it. Raises NoSuchDate.
    """
    years = (today.year - 1, today.year, today.year + 1)
    found = {year: one for year in years if (one := _date(year, month, day))}
    if today.year not in found:
        raise NoSuchDate(f"Month {month} of {today.year} has no day {day}")
    return min(found.values(), key=lambda one: abs(one - today))


def on(year: int, month: int, day: int) -> date:
    """The date. Raises NoSuchDate."""
    if found := _date(year, month, day):
        return found
    raise NoSuchDate(f"{year:04}-{month:02}-{day:02} is no day of the calendar")


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
