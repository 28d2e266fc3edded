"""Stretches of time, and sums over them that the database makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, F, FloatField, Func, Q, QuerySet, Sum, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Floor

SLICES = 48
WIDTHS_S = (60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
DAY_S = 86_400
FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)


class Seconds(Func):
    """Seconds from the second expression to the first.

    They are exact to a millisecond on every database.
    """

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
    """A period from `start` up to `end`, cut into equal slices of `width_s`.

    The last slice may reach beyond the end.
    """

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


def before(moment: datetime, length: timedelta) -> datetime:
    """So long before a moment, or the first moment that there is."""
    return max(moment, FIRST_MOMENT + length) - length


def counts_by_slice(
    rows: QuerySet[Any], column: str, period: Period, *by: str
) -> list[tuple[int, tuple[Any, ...], int]]:
    """Count the rows whose column lies in the period, in one query.

    Returns (slice, values of `by`, rows).
    """
    found = (
        rows.filter(period.holds(column))
        .annotate(slice=period.slice_of(column))
        .order_by()
        .values_list("slice", *by)
        .annotate(n=Count("pk"))
    )
    return [(int(number), tuple(values), n) for number, *values, n in found]


@dataclass(frozen=True, slots=True)
class Spans:
    """Rows that last from the moment in one column to that in another.

    A row whose `end` is null is open.
    """

    rows: QuerySet[Any]
    begin: str
    end: str


def unit_seconds(asked: Mapping[str, Spans], period: Period, now: datetime) -> dict[str, list[float]]:
    """Return by name how many row-seconds fall into each slice.

    An open row counts up to `now` where the period reaches beyond. A row open at the period's start counts
    for all of it; a beginning or an end within it adds or takes the rest of its slice, and the whole of each
    later one. So one query suffices, whatever the number of rows.
    """
    changes: dict[str, list[tuple[float, int, float]]] = defaultdict(list)
    parts = [part for name, spans in asked.items() for part in _changes(name, spans, period)]
    for name, *change in parts[0].union(*parts[1:], all=True):
        changes[name].append((change[0], change[1], change[2]))
    return {name: _added_up(changes[name], period, min(period.end, now)) for name in asked}


def _changes(name: str, spans: Spans, period: Period) -> Iterator[QuerySet[Any, Any]]:
    """Return (name, slice, row count change, sum of their seconds).

    The seconds are since the period's start. The change in the number of rows holds from that slice on.
    """
    rows, begin, end = spans.rows, spans.begin, spans.end
    open_at_start = rows.filter(Q(**{f"{end}__isnull": True}) | Q(**{f"{end}__gte": period.start}))
    before = open_at_start.filter(**{f"{begin}__lt": period.start}).annotate(slice=Value(0.0))
    yield _summed(name, before, Value(0.0))
    for column, sign in ((begin, 1), (end, -1)):
        within = rows.filter(period.holds(column)).annotate(slice=period.slice_of(column))
        yield _summed(name, within, Seconds(F(column), Value(period.start)), sign)


def _summed(name: str, rows: QuerySet[Any], since_start: Combinable, sign: int = 1) -> QuerySet[Any, Any]:
    total = Coalesce(Sum(since_start, output_field=FloatField()), 0.0)
    sums = {"n": sign * Count("pk"), "since_start": sign * total}
    named = rows.annotate(of=Value(name)).order_by()
    found: QuerySet[Any, Any] = named.values_list("of", "slice").annotate(**sums)
    return found


def _added_up(changes: Iterable[tuple[float, int, float]], period: Period, until: datetime) -> list[float]:
    slices, width = period.slices, period.width_s
    more, late = [0] * len(slices), [0.0] * len(slices)
    for number, n, since_start in changes:
        more[int(number)] += n
        late[int(number)] += since_start - n * number * width  # seconds of the slice that were over by then
    level, seconds = 0, []
    for number, moment in enumerate(slices):
        level += more[number]
        lasted = min(float(width), max(0.0, (until - moment).total_seconds()))
        seconds.append(level * lasted - late[number])
    return seconds


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
