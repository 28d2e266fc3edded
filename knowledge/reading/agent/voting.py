"""Several runs vote on each value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

CLOSE = 0.01  # numbers that differ by less are one value


def vote(values: Sequence[Any], resolve: Callable[[str], str] = str) -> tuple[Any, int]:
    """The value of more than half of the runs, and their number; else (None, 0).

    values: one of each run, None where it gave none. `resolve` gives a text's name in a catalogue.
    """
    for one in values:
        same = [other for other in values if one is not None and _same(one, other, resolve)]
        if 2 * len(same) > len(values):
            return _common(same, resolve), len(same)
    return None, 0


def _same(one: Any, other: Any, resolve: Callable[[str], str]) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= CLOSE * max(abs(one), abs(other))
    return type(one) is type(other) and _folded(one, resolve) == _folded(other, resolve)


def _folded(value: Any, resolve: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return sorted(str(part).lower() for part in value)
    return resolve(value).strip().lower()


def _common(same: Sequence[Any], resolve: Callable[[str], str]) -> Any:
    """The most frequent of close numbers; the resolved or folded one of texts."""
    if all(one == same[0] for one in same) or not isinstance(same[0], str):
        return max(same, key=same.count)
    resolved = resolve(same[0])
    return resolved if resolved != same[0] else same[0].strip().lower()
