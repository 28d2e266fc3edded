"""Reading CSV text with errors that name line, column and remedy.

Nothing is accepted if a row is bad.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from knowledge.core.data.measurement import Measurement, finished, flag_implausible
from knowledge.core.domain.catalogue import Catalogue, UnknownGpu

MAX_ERRORS = 20
MAX_CELL = 2000
MAX_COLUMNS = 1000
MAX_LINE = 1_000_000  # characters
LARGEST = 2**31 - 1
# Characters that the database holds. Longer settings are refused; of the rest the beginning tells enough.
LONGEST_SETTING = {
    "model_name": 300,
    "precision": 20,
    "quantization": 20,
    "optimizer_state": 20,
    "sharding": 20,
    "network": 20,
}
LONGEST_SOURCE = 60
LONGEST_STACK = {"software": 200, "run_protocol": 60}
LONGEST_REMARK = {"origin": 100, "flag_reason": 300}


class BadTable(ValueError):
    """A file that cannot be imported; `errors` lists (line, column, what is wrong)."""

    def __init__(self, errors: Sequence[tuple[int, str, str]]) -> None:
        self.errors = list(errors)
        first = "; ".join(f"line {line}, {column}: {message}" for line, column, message in self.errors[:3])
        super().__init__(f"{len(self.errors)} wrong cells, nothing was imported: {first}")


class BadCell(ValueError):
    """One wrong cell."""

    def __init__(self, column: str, message: str) -> None:
        self.column = column
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Cells:
    """One line with typed access; an empty cell or a missing column reads as None."""

    raw: dict[str, str]
    catalogue: Catalogue

    def text(self, column: str) -> str | None:
        value = (self.raw.get(column) or "").strip()
        if len(value) > MAX_CELL or "\x00" in value:
            raise BadCell(column, f"is longer than {MAX_CELL} characters or not a text")
        return value or None

    def need(self, column: str) -> str:
        value = self.text(column)
        if value is None:
            raise BadCell(column, "is empty")
        return value

    def number(self, column: str, low: float = 0.0, high: float = 1e15) -> float | None:
        value = self.text(column)
        if value is None:
            return None
        try:
            found = float(value)
        except ValueError:
            raise BadCell(column, f"{value!r} is not a number; write 1234.5") from None
        if not math.isfinite(found) or not low <= found <= high:
            raise BadCell(column, f"{value} is not between {low:g} and {high:g}")
        return found

    def whole(self, column: str, low: int = 0, high: int = 10**9) -> int | None:
        found = self.number(column, low, high)
        if found is not None and found != int(found):
            raise BadCell(column, f"{found:g} is not a whole number")
        return None if found is None else int(found)

    def count(self, column: str, low: int = 1, high: int = 10**9) -> int:
        found = self.whole(column, low, high)
        if found is None:
            raise BadCell(column, "is empty")
        return found

    def flag(self, column: str) -> bool | None:
        value = self.text(column)
        if value is None:
            return None
        if value.lower() in ("1", "true", "1.0"):
            return True
        if value.lower() in ("0", "false", "0.0"):
            return False
        raise BadCell(column, f"{value!r} is neither true nor false")

    def answer(self, column: str) -> bool:
        """A flag that must be there."""
        self.need(column)
        return bool(self.flag(column))

    def choice(self, column: str, allowed: Sequence[str]) -> str | None:
        value = self.text(column)
        if value is not None and value not in allowed:
            raise BadCell(column, f"{value!r} is not one of {', '.join(allowed)}")
        return value

    def one_of(self, column: str, allowed: Sequence[str]) -> str:
        """A choice that must be made."""
        self.need(column)
        return self.choice(column, allowed) or allowed[0]

    def gpu(self, column: str) -> str:
        value = self.need(column)
        try:
            return self.catalogue.gpu(value).gpu_model
        except UnknownGpu as unknown:
            raise BadCell(column, str(unknown)) from None

    def model(self, column: str) -> str:
        """Return the catalogue's key, or the name as it is if the model is unknown.

        Unknown models are kept, but not learnt from.
        """
        return self.catalogue.model_key(self.need(column))


def read(
    text: str, required: Sequence[str], make: Callable[[Cells], Measurement | None], catalogue: Catalogue
) -> list[Measurement]:
    """Read the rows of a CSV text.

    `make` turns a line into a row, or into None to leave it out. Raises BadTable.
    """
    lines = _lines(text, required, catalogue)
    rows: list[Measurement] = []
    errors: list[tuple[int, str, str]] = []
    for number, cells in lines:
        try:
            row = make(cells)
            kept = None if row is None else _storable(finished(row, catalogue))
        except BadCell as wrong:
            errors.append((number, wrong.column, str(wrong)))
            if len(errors) >= MAX_ERRORS:
                break
        else:
            if kept is not None:
                rows.append(kept)
    if errors:
        raise BadTable(errors)
    return flag_implausible(rows, catalogue)


def check_batch(effective: int) -> None:
    """Raise BadCell for more samples a step than the database holds."""
    if effective > LARGEST:
        raise BadCell("per_device_batch_size", f"makes an effective batch above {LARGEST:,}")


def _storable(row: Measurement) -> Measurement:
    """Return the row with remarks cut to the length that the database holds.

    Raises BadCell for a setting that the database cannot hold.
    """
    config = row.config
    for name, longest in LONGEST_SETTING.items():
        if len(getattr(config, name) or "") > longest:
            raise BadCell(name, f"is longer than {longest} characters")
    if len(row.source) > LONGEST_SOURCE:
        raise BadCell("source", f"is longer than {LONGEST_SOURCE} characters")
    check_batch(max(row.effective_batch_size, config.effective_batch_size))
    stack: dict[str, Any] = {
        name: (getattr(config, name) or "")[:longest] or None for name, longest in LONGEST_STACK.items()
    }
    remarks: dict[str, Any] = {name: getattr(row, name)[:most] for name, most in LONGEST_REMARK.items()}
    return replace(row, config=replace(config, **stack), **remarks)


def header(text: str) -> list[str]:
    """The column names of the first line, or an empty list."""
    return [name.strip() for name in next(_split(text), (0, []))[1]]


def _split(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every line that is not blank.

    Raises BadTable.
    """
    reader = csv.reader(_bounded(io.StringIO(text.lstrip("\ufeff"))))
    try:
        for values in reader:
            if len(values) > MAX_COLUMNS:
                raise BadTable([(reader.line_num, "line", f"has more than {MAX_COLUMNS:,} cells")])
            if any(value.strip() for value in values):
                yield reader.line_num, values
    except csv.Error as broken:
        raise BadTable([(reader.line_num, "line", f"is no CSV: {broken}")]) from broken


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise BadTable([(number, "line", f"is longer than {MAX_LINE:,} characters")])
        yield line


def _lines(text: str, required: Sequence[str], catalogue: Catalogue) -> Iterator[tuple[int, Cells]]:
    names = header(text)
    doubled = sorted(name for name, times in Counter(names).items() if times > 1)
    if doubled:
        raise BadTable([(1, name, "this column is there twice") for name in doubled])
    missing = [name for name in required if name not in names]
    if missing:
        hint = "; columns must be separated by commas" if len(names) == 1 else ""
        raise BadTable([(1, name, f"this column is missing{hint}") for name in missing])
    return _cells(text, names, catalogue)


def _cells(text: str, names: list[str], catalogue: Catalogue) -> Iterator[tuple[int, Cells]]:
    lines = _split(text)
    next(lines)
    for number, values in lines:
        if len(values) != len(names):
            raise BadTable([(number, "line", f"has {len(values)} cells instead of {len(names)}")])
        yield number, Cells(dict(zip(names, values, strict=True)), catalogue)
