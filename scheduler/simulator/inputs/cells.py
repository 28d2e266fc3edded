"""Cells of traces and their side files as numbers and times.

A ValueError names the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from scheduler.simulator.errors import SimulatorError, TraceError
from scheduler.simulator.inputs.files import Row

T = TypeVar("T")
_BEGINNING = datetime.fromisoformat("1970-01-01")


def converted(
    rows: Iterable[Row],
    convert: Callable[[Row], T],
    *,
    file: str,
    needs: str,
    error: type[SimulatorError] = TraceError,
) -> Iterator[T]:
    """Return the rows of a side file as values.

    Raises the error, which names file, row and column.
    """
    for count, row in enumerate(rows, start=1):
        try:
            yield convert(row)
        except (KeyError, ValueError) as wrong:
            said = f"there is no column {wrong}" if isinstance(wrong, KeyError) else wrong
            raise error(f"{file}, row {count}: needs {needs}: {said}") from wrong


def number(row: Row, column: str) -> float:
    """The column as a number."""
    try:
        return float(row[column])
    except (TypeError, ValueError):
        raise ValueError(f"{column} is {row[column]!r}; it must be a number") from None


def optional(row: Row, column: str) -> float | None:
    """The column as a number, None where it is empty or missing."""
    return number(row, column) if row.get(column) else None


def whole(row: Row, column: str) -> int:
    """The column as a whole number."""
    text = row[column]
    if text and text.isdecimal():  # as most are
        return int(text)
    value = number(row, column)
    if not value.is_integer():
        raise ValueError(f"{column} is {row[column]!r}; it must be a whole number")
    return int(value)


def wall_clock(row: Row, column: str) -> float:
    """A date and time as seconds since 1970; one without a zone counts as UTC."""
    try:
        moment = datetime.fromisoformat(row[column])
    except (TypeError, ValueError):
        raise ValueError(f"{column} is {row[column]!r}; it must be a date and time") from None
    return moment.timestamp() if moment.tzinfo else (moment - _BEGINNING).total_seconds()


def flag(row: Row, column: str, default: bool) -> bool:
    """The column as yes (1, true) or no."""
    return row[column].strip().lower() in ("1", "true", "yes") if row.get(column) else default
