"""Step metrics thinned to a few rows that still show what the curves show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Row = tuple[int, Sequence[float | None]]  # its key, and the values of all metrics
Extremes = dict[tuple[int, bool], tuple[float, int]]  # (place, highest) -> (value, key)


def kept_rows(rows: Iterable[Row], *, count: int, metrics: int, points: int) -> set[int]:
    """Return the keys of at most `points` of the rows.

    The first and the last row are among them, then the lowest and the highest value of every metric, as far
    as there is room. The rest shows the first metric: of equal stretches the lowest and the highest value, so
    that a spike stays one.

    count: of the rows, which are read once. points: 2 at least.
    """
    stretches = max(0, points - 2 - 2 * metrics) // 2
    ends: list[int] = []
    overall: Extremes = {}
    within: Extremes = {}
    for index, (key, values) in enumerate(rows):
        ends = [*ends[:1], key]
        for metric, value in enumerate(values):
            if value is not None:
                _keep(overall, metric, value, key)
        if stretches and values[0] is not None:
            _keep(within, index * stretches // count, values[0], key)
    kept = dict.fromkeys(ends)
    for found in (overall, within):
        kept |= dict.fromkeys(found[place][1] for place in sorted(found))
    return set(list(kept)[:points])


def _keep(found: Extremes, place: int, value: float, key: int) -> None:
    """Keep the lowest and the highest value of a place; of equal ones the first."""
    for highest in (False, True):
        known = found.get((place, highest))
        if known is None or (value > known[0] if highest else value < known[0]):
            found[place, highest] = (value, key)
