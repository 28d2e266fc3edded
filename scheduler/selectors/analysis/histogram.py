"""Distributions as the database counts them.

They are drawn from logarithmic bins that are one per cent wide. Percentiles are exact: of the bins that hold
one, the values themselves are read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Floor, Greatest, Ln

PER_E = 100  # bins in a factor of e
LEAST = 0.1  # smaller values share a bin
SHARES = (0.1, 0.5, 0.9, 0.95, 0.99)  # of which percentiles are shown

Counts = tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie in each bin, in rising order.

    Bin k holds exp(k/PER_E) up to exp((k+1)/PER_E).

    exact: by bin, its values in rising order and how often each occurs.
    """

    bins: tuple[tuple[int, int], ...] = ()
    exact: Mapping[int, Counts] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(count for _, count in self.bins)

    def quantile(self, share: float) -> float | None:
        """Return the value below which `share` of all values lie.

        Between two values it is interpolated, as `numpy.quantile` does; it is exact for each of SHARES, and
        within half a per cent for others. None without values.
        """
        if not self.bins:
            return None
        position = share * (self.total - 1)
        low, high = self._ranked(math.floor(position)), self._ranked(math.ceil(position))
        return low + (high - low) * (position % 1)

    def holding(self, share: float) -> set[int]:
        """The bins of the one or two values between which the quantile of `share` lies."""
        position = share * (self.total - 1)
        return {self._bin(rank)[0] for rank in (math.floor(position), math.ceil(position))}

    def _ranked(self, rank: int) -> float:
        """The value of a rank, from 0 on; the middle of its bin where that was not read."""
        number, before = self._bin(rank)
        middle = ((math.exp((number + 0.5) / PER_E), self.total),)
        held: Counts = self.exact.get(number, middle)
        within = accumulate(count for _, count in held)
        return next(value for (value, _), upto in zip(held, within, strict=True) if upto > rank - before)

    def _bin(self, rank: int) -> tuple[int, int]:
        """The bin of a rank, and how many values lie below it."""
        upto = accumulate(count for _, count in self.bins)
        return next(
            (number, seen - count)
            for (number, count), seen in zip(self.bins, upto, strict=True)
            if seen > rank
        )

    def coarse(self, width: int) -> list[tuple[float, float, int]]:
        """(from, to, values) of bins `width` times as wide, gaps included."""
        counts: dict[int, int] = {}
        for number, count in self.bins:
            counts[number // width] = counts.get(number // width, 0) + count
        if not counts:
            return []
        return [
            (math.exp(k * width / PER_E), math.exp((k + 1) * width / PER_E), counts.get(k, 0))
            for k in range(min(counts), max(counts) + 1)
        ]


def of(counts: Iterable[tuple[float, int]]) -> Histogram:
    """A histogram from (bin, count) pairs in any order."""
    return Histogram(tuple(sorted((int(number), count) for number, count in counts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """An expression over the rows where it is known.

    by: a column; each of its values has a distribution of its own.
    always_known: spares asking whether the value is null, which computes it a second time.
    """

    rows: QuerySet[Any, Any]
    value: Combinable
    by: str = ""
    always_known: bool = False

    def binned(self, name: str) -> QuerySet[Any, Any]:
        valued = self.rows.annotate(binned=self.value)
        # GREATEST overlooks nulls on PostgreSQL, so unknown values leave beforehand.
        known = valued if self.always_known else valued.filter(binned__isnull=False)
        found: QuerySet[Any, Any] = known.annotate(
            of=Value(name),
            group=F(self.by) if self.by else Value(""),
            bin=Floor(Ln(Greatest("binned", Value(LEAST))) * Value(float(PER_E))),
        )
        return found.order_by()


def histograms(asked: Mapping[str, Values]) -> dict[tuple[str, str], Histogram]:
    """The distributions by name and group; two queries for all of them."""
    known = {name: values.binned(name) for name, values in asked.items()}
    groups: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    counts = (rows.values_list("of", "group", "bin").annotate(n=Count("pk")) for rows in known.values())
    for name, group, number, count in _together(counts):
        groups[name, group].append((number, count))
    return _with_percentiles(known, {key: of(counts) for key, counts in groups.items()})


def _with_percentiles(
    known: Mapping[str, QuerySet[Any, Any]], found: Mapping[tuple[str, str], Histogram]
) -> dict[tuple[str, str], Histogram]:
    """Add the values of the few bins in which percentiles lie."""
    needed: dict[str, Q] = defaultdict(Q)
    for (name, group), one in found.items():
        needed[name] |= Q(group=group, bin__in=set().union(*map(one.holding, SHARES)))
    read: dict[tuple[str, str], dict[int, list[tuple[float, int]]]]
    read = defaultdict(lambda: defaultdict(list))
    values = (
        known[name].filter(some).values_list("of", "group", "bin", "binned").annotate(n=Count("pk"))
        for name, some in needed.items()
    )
    for name, group, number, exactly, count in _together(values):
        read[name, group][int(number)].append((exactly, count))
    return {
        key: Histogram(one.bins, {number: tuple(sorted(held)) for number, held in read[key].items()})
        for key, one in found.items()
    }


def _together(queries: Iterable[QuerySet[Any, Any]]) -> Iterable[Any]:
    found = list(queries)
    return found[0].union(*found[1:], all=True) if found else ()
