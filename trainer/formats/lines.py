"""From bytes to numbered lines, and from a line to its JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from trainer import strict_json

SPREAD = "begins an object that does not end on this line; write each object on one line"
EXAMPLE = '{"prompt": "...", "completion": "..."}'
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


def numbered(lines: BinaryIO, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines without blank ones.

    A fault that makes the whole file unreadable is raised at once.
    """
    number = 0
    while line := lines.readline(max_line_bytes + 2):
        number += 1
        if number == 1:
            _reject_binary(line)
            line = line.removeprefix(_BOM)
        line = line.strip()
        if line.startswith(b"["):
            message = "is a JSON array; write one JSON object per line, without [ ] around or , between them"
            raise FormatError([LineError(number, message)])
        if line == b"{":
            raise FormatError([LineError(number, SPREAD)])
        if len(line) > max_line_bytes:
            raise FormatError([LineError(number, f"is longer than {max_line_bytes} bytes; split the row")])
        if line:
            yield number, line


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
