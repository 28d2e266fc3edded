"""From bytes to numbered lines, and from a line to its JSON object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from trainer import strict_json

SPREAD = "begins an object that does not end on this line; write each object on one line"
GOES_ON = "the file goes on after its JSON array; write one array, or one object a line"
EXAMPLE = '{"prompt": "...", "completion": "..."}'
# Up to the next bracket of a JSON array outside texts, or a quote whose text has no end yet, or the end.
_MARK = re.compile(rb"""(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{}\[\]"]|\Z)""", re.DOTALL)
_PIECE = 1 << 16
_BOM = b"\xef\xbb\xbf"
_BINARY = {
    b"\x80": "a Python pickle",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"PAR1": "a Parquet file",
}


@dataclass(frozen=True, slots=True)
class LineError:
    """The error of one line; lines count from 1."""

    line: int
    message: str


class FormatError(ValueError):
    """A file that cannot be trained on: its first bad lines with reasons."""

    def __init__(self, errors: list[LineError]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"line {error.line}: {error.message}" for error in errors))


@dataclass(frozen=True, slots=True)
class Line:
    """What holds a row.

    number: of the line where it begins. place: of an array's row, such as `row 2 `.
    """

    number: int
    content: bytes
    place: str = ""


def numbered(lines: BinaryIO, max_line_bytes: int) -> Iterator[Line]:
    """Yield numbered lines without blank ones, or the rows of a JSON array.

    A fault that makes the whole file unreadable is raised at once.
    """
    number, is_first = 0, True
    while line := lines.readline(_PIECE):
        number += 1
        if number == 1:
            _reject_binary(line)
            line = line.removeprefix(_BOM)
        if is_first and line.lstrip().startswith(b"["):
            yield from _rows_of_array(line, lines, number, max_line_bytes)
            return
        if len(line) == _PIECE and not line.endswith(b"\n"):
            line += lines.readline(max(0, max_line_bytes + 2 - _PIECE))
        line = line.strip()
        if line == b"{":
            raise FormatError([LineError(number, SPREAD)])
        if len(line) > max_line_bytes:
            raise FormatError([LineError(number, f"is longer than {max_line_bytes} bytes; split the row")])
        if line:
            is_first = False
            yield Line(number, line)


def _rows_of_array(head: bytes, lines: BinaryIO, number: int, max_row_bytes: int) -> Iterator[Line]:
    """Yield the objects of a JSON array as they stand in the file.

    head: the beginning of the array, from line `number` on. What is read is one object at a time.
    """
    buffer = bytearray(head[head.index(b"[") + 1 :])
    at = begin = depth = row = 0
    while True:
        mark = _MARK.match(buffer, at)
        symbol, at = (mark[1], mark.start(1)) if mark else (b"", len(buffer))
        if symbol in (b"", b'"'):  # it goes on in the next piece
            if len(buffer) > max_row_bytes + _PIECE:
                raise FormatError([LineError(number, f"row {row + 1} is longer than {max_row_bytes} bytes")])
            if not (piece := lines.read(_PIECE)):
                raise FormatError([LineError(number, "the JSON array has no end; is the file whole?")])
            buffer += piece
            continue
        if not depth:
            _check_between(buffer[:at], symbol, row, number)
            number += buffer.count(b"\n", 0, at)
            begin = at
        at += 1
        depth += (symbol in b"{[") - (symbol in b"}]")
        if depth < 0:
            rest = bytes(buffer[at:]) + lines.read(_PIECE)
            if rest.strip():
                raise FormatError([LineError(number, GOES_ON)])
            return
        if not depth and symbol in b"}]":
            row += 1
            content = bytes(buffer[begin:at])
            if len(content) > max_row_bytes:
                raise FormatError([LineError(number, f"row {row} is longer than {max_row_bytes} bytes")])
            yield Line(number, content, f"row {row} of the array ")
            number += content.count(b"\n")
            del buffer[:at]
            at = 0


def _check_between(between: bytes | bytearray, symbol: bytes, row: int, number: int) -> None:
    """Check what stands before an object of an array.

    It must be one comma, and nothing before the first.
    """
    found = between.strip()
    if row and (symbol, found) == (b"]", b","):
        raise FormatError([LineError(number, f"has a comma after row {row}, the last one; leave it out")])
    if symbol not in b"{]" or found not in ((b",",) if row and symbol == b"{" else (b"",)):
        message = (
            f"is a JSON array that holds something else than objects with commas between them: {EXAMPLE}"
        )
        raise FormatError([LineError(number, message)])


def _reject_binary(head: bytes) -> None:
    kind = next((kind for magic, kind in _BINARY.items() if head.startswith(magic)), None)
    if kind is None and head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        kind = "UTF-16 text"
    if kind is None and b"\x00" in head:
        kind = "binary"
    if kind:
        raise FormatError(
            [LineError(1, f"the file is not a text file in UTF-8 but {kind}; upload JSON Lines")]
        )


def json_object(line: bytes) -> dict[str, Any]:
    """The one object of a line. Raises ValueError with a sentence."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise ValueError(f"is not UTF-8 (byte {wrong.start + 1}); save the file as UTF-8") from None
    try:
        raw = strict_json.loads(text)
    except json.JSONDecodeError as wrong:
        raise ValueError(_no_object(text, wrong)) from None
    if not isinstance(raw, dict):
        raise ValueError(f"must be a JSON object such as {EXAMPLE}")
    return raw


def _no_object(text: str, wrong: json.JSONDecodeError) -> str:
    """Why a line is not one JSON object, in the words of who wrote the file."""
    rest = text[wrong.pos :]
    if not text.startswith("{"):
        return f"is not JSON; convert CSV or plain text to one object a line, such as {EXAMPLE}"
    if not rest:
        return SPREAD
    if wrong.msg == "Extra data":
        remedy = "leave out the comma" if rest[0] == "," else "write each object on a line of its own"
        return f"goes on after its object, at character {wrong.pos + 1}; {remedy}"
    return f"is not one JSON object: {wrong.msg} at character {wrong.pos + 1}"
