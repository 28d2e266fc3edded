"""Stretches of time, and sums over them that the database makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, FloatField, Func, Q, QuerySet, Sum, Value
from django.db.models.functions import Floor

SLICES = 48
WIDTHS_S = (60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
DAY_S = 86_400


class Seconds(Func):
    """Seconds from the second expression to the first, exact to a millisecond on every database."""

    arity = 2
    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "((julianday(%(expressions)s)) * 86400.0)"
        return self.as_sql(compiler, connection, template=template, arg_joiner=") - julianday(", **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "EXTRACT(EPOCH FROM (%(expressions)s))::float8"
        return self.as_sql(compiler, connection, template=template, arg_joiner=" - ", **context)


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` up to `end`, cut into equal slices of `width_s`; the last one may reach beyond."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()

    @property
    def width_s(self) -> int:
        """The shortest round width that needs at most `SLICES` slices."""
        least = self.seconds / SLICES
        days = -(-least // DAY_S) * DAY_S
        return next((width for width in WIDTHS_S if width >= least), int(days))

    @property
    def slices(self) -> list[datetime]:
        """The start of each slice."""
        count = max(1, int(-(-self.seconds // self.width_s)))
        return [self.start + timedelta(seconds=self.width_s * number) for number in range(count)]

    def holds(self, column: str) -> Q:
        """The column lies within."""
        return Q(**{f"{column}__gte": self.start, f"{column}__lt": self.end})

    def slice_of(self, column: str) -> Floor:
        """The number of the slice that the column lies in."""
        return Floor(Seconds(F(column), Value(self.start)) / Value(float(self.width_s)))


def counts_by_slice(
    rows: QuerySet[Any], column: str, period: Period, *by: str
) -> list[tuple[int, tuple[Any, ...], int]]:
    """(slice, values of `by`, rows) of the rows whose column lies in the period; one query."""
    found = (
        rows.filter(period.holds(column))
        .annotate(slice=period.slice_of(column))
        .order_by()
        .values_list("slice", *by)
        .annotate(n=Count("pk"))
    )
    return [(int(number), tuple(values), n) for number, *values, n in found]


def unit_seconds(rows: QuerySet[Any], begin: str, end: str | None, period: Period) -> list[float]:
    """How many row-seconds between `begin` and `end` fall into each slice; `end` null or None is open.

    What is open at a slice's start counts for all of it; what begins or ends within adds or takes the
    rest of the slice. So three queries suffice, whatever the number of rows.
    """
    open_at_start = rows.filter(**{f"{begin}__lt": period.start})
    if end:
        open_at_start = open_at_start.filter(
            Q(**{f"{end}__isnull": True}) | Q(**{f"{end}__gte": period.start})
        )
    began = _changes(rows, begin, period)
    ended = _changes(rows, end, period) if end else {}
    level, seconds = open_at_start.count(), []
    for number, moment in enumerate(period.slices):
        width = min(float(period.width_s), (period.end - moment).total_seconds())
        started, into_start = began.get(number, (0, 0.0))
        stopped, into_stop = ended.get(number, (0, 0.0))
        seconds.append(level * width + (started * width - into_start) - (stopped * width - into_stop))
        level += started - stopped
    return seconds


def _changes(rows: QuerySet[Any], column: str, period: Period) -> dict[int, tuple[int, float]]:
    """By slice: how many rows have the column in it, and the sum of their seconds since its start."""
    found = (
        rows.filter(period.holds(column))
        .annotate(slice=period.slice_of(column))
        .order_by()
        .values_list("slice")
        .annotate(n=Count("pk"), since_start=Sum(Seconds(F(column), Value(period.start))))
    )
    return {int(k): (n, total - n * k * period.width_s) for k, n, total in found}


def first_of(rows: QuerySet[Any], column: str) -> datetime | None:
    """The earliest moment of a column."""
    moment: datetime | None = rows.order_by(column).values_list(column, flat=True).first()
    return moment


def by_slice(period: Period, counts: Iterable[tuple[int, int]]) -> list[int]:
    """Counts as one number for each slice, 0 where there are none."""
    filled = [0] * len(period.slices)
    for number, n in counts:
        if 0 <= number < len(filled):
            filled[number] += n
    return filled
