"""The one module of the simulator that reads and writes files."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

from scheduler.simulator.errors import SimulatorError, TraceError

Row = Mapping[str, str]


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A text file, gzipped or not. Raises TraceError if it cannot be read."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as stream:
                yield stream
        else:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                yield stream
    except (OSError, UnicodeDecodeError, csv.Error, EOFError) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from error


def read_header(path: Path) -> tuple[str, ...]:
    """The column names of a CSV file."""
    with open_text(path) as stream:
        return tuple(next(csv.reader(stream), ()))


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a CSV file by column name.

    Cells that are missing are None, and so is the name of those that are too many.
    """
    with open_text(path) as stream:
        rows = csv.reader(stream)
        columns = next(rows, [])
        for cells in filter(None, rows):
            yield dict(zip_longest(columns, cells))


def read_json(path: Path) -> Any:
    """The value in a file, compressed or not. Raises TraceError."""
    with open_text(path) as stream:
        try:
            return json.load(stream)
        except ValueError as error:
            raise TraceError(f"{path}: is not JSON: {error}") from error


def find_beside(path: Path, *names: str) -> Path | None:
    """The first of these files in the trace's folder or in a folder above it."""
    for folder in path.resolve().parents:
        for name in names:
            if (folder / name).exists():
                return folder / name
    return None


def write_rows(path: Path, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file, gzipped if its name ends in .gz."""
    if path.suffix == ".gz":
        with gzip.open(path, "wt", encoding="utf-8", newline="") as stream:
            _write(stream, columns, rows)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            _write(stream, columns, rows)


def write_text(path: Path, text: str) -> None:
    """Raises SimulatorError if the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SimulatorError(f"{path}: cannot be written: {error.strerror}") from error


def _write(stream: Any, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows(rows)
