"""A whole file: its rows, or its first bad lines with reasons."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trainer.formats.lines import FormatError, LineError, numbered
from trainer.formats.recognise import Format, parse_row
from trainer.formats.rows import Row
from trainer.formats.unused import Unused

MAX_ERRORS = 20


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The content of a good file.

    lengths: (bytes, rows) in rising order, bytes the bucket's upper bound.
    unused: fields that nothing understands.
    """

    rows: int
    format: str
    lengths: tuple[tuple[int, int], ...]
    text_bytes: int
    unused: tuple[str, ...] = ()


def check(lines: BinaryIO, *, max_line_bytes: int = 1_000_000, max_rows: int = 10_000_000) -> FileFacts:
    """Return the facts of an uploaded file, read as a stream.

    Raises FormatError with the first 20 bad lines.
    """
    bounds = _bucket_bounds(max_line_bytes)
    buckets: Counter[int] = Counter()
    unused = Unused()
    count = text_bytes = 0
    for form, row in _checked(lines, max_line_bytes, unused):
        count += 1
        if count > max_rows:
            raise FormatError([LineError(count, f"the file has more than {max_rows} rows; split it")])
        size = row.text_bytes
        text_bytes += size
        buckets[bounds[min(bisect_left(bounds, size), len(bounds) - 1)]] += 1
        name = form.name
    return FileFacts(count, name, tuple(sorted(buckets.items())), text_bytes, unused.names)


def rows(path: Path, unused: Unused | None = None) -> Iterator[Row]:
    """Yield the rows of a file, in order.

    Raises FormatError as `check` does, after the rows before the error.
    """
    with path.open("rb") as lines:
        for _, row in _checked(lines, 2**30, unused or Unused()):
            yield row


def _checked(lines: BinaryIO, max_line_bytes: int, unused: Unused) -> Iterator[tuple[Format, Row]]:
    """Yield rows until the first bad line, then only collect errors.

    There is at least one row or an error.
    """
    errors: list[LineError] = []
    form: Format | None = None
    for line in numbered(lines, max_line_bytes):
        try:
            found, row = parse_row(line.content, unused)
            form = form or found
            if found is not form:
                raise ValueError(f"is {found.name}, but the lines before are {form.name}")
        except ValueError as wrong:
            errors.append(LineError(line.number, f"{line.place}{wrong}"))
            if len(errors) == MAX_ERRORS:
                break
        else:
            if not errors:
                yield form, row
    if form is None and not errors:
        errors.append(LineError(1, "the file is empty; it needs at least one row"))
    if errors:
        raise FormatError(errors)


def _bucket_bounds(highest: int) -> list[int]:
    """Return the upper bounds of length buckets, 8 % apart.

    They are exact for the shortest: about 160 up to a megabyte.
    """
    bounds = [1]
    while bounds[-1] < highest:
        bounds.append(min(highest, max(bounds[-1] + 1, bounds[-1] * 108 // 100)))
    return bounds
