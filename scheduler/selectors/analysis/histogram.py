"""Distributions as the database counts them.

The bins are logarithmic and one per cent wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.db.models import Count, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Floor, Greatest, Ln

PER_E = 100  # bins in a factor of e: quantiles are exact to half a per cent
LEAST = 0.1  # smaller values count as this one


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie in each bin, in rising order.

    Bin k holds exp(k/PER_E) up to exp((k+1)/PER_E).
    """

    bins: tuple[tuple[int, int], ...] = ()

    @property
    def total(self) -> int:
        return sum(count for _, count in self.bins)

    def quantile(self, share: float) -> float | None:
        """Return the value below which `share` of all values lie.

        Between two values it is interpolated, as `numpy.quantile` does. None without values.
        """
        if not self.bins:
            return None
        position = share * (self.total - 1)
        low, high = self._ranked(math.floor(position)), self._ranked(math.ceil(position))
        return low + (high - low) * (position % 1)

    def _ranked(self, rank: int) -> float:
        """The value of a rank, from 0 on: the middle of its bin."""
        seen = accumulate(count for _, count in self.bins)
        number = next(number for (number, _), upto in zip(self.bins, seen, strict=True) if upto > rank)
        return math.exp((number + 0.5) / PER_E)

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


def histogram(rows: QuerySet[Any], value: Combinable, *, always_known: bool = False) -> Histogram:
    """The distribution of an expression over the rows where it is known; one query."""
    return histograms(rows, value, always_known=always_known).get((), Histogram())


def histograms(
    rows: QuerySet[Any], value: Combinable, by: Sequence[str] = (), *, always_known: bool = False
) -> dict[tuple[Any, ...], Histogram]:
    """One distribution for each combination of the columns `by`; one query for all.

    `always_known` spares asking whether the value is null, which computes it a second time.
    """
    number = Floor(Ln(Greatest("binned", Value(LEAST))) * Value(float(PER_E)))
    valued = rows.alias(binned=value)
    # GREATEST overlooks nulls on PostgreSQL, so unknown values leave beforehand.
    known = valued if always_known else valued.filter(binned__isnull=False)
    found = known.annotate(bin=number).order_by().values_list(*by, "bin").annotate(n=Count("pk"))
    groups: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
    for *key, bin_number, count in found:
        groups.setdefault(tuple(key), []).append((bin_number, count))
    return {key: of(counts) for key, counts in groups.items()}
