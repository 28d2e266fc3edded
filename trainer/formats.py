"""What training lines look like: JSON Lines of chats or of prompts with completions. Standard library only.

The portal calls `check` at upload, the trainer reads with `rows`; both go through `parse_row`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from trainer import strict_json

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_ERRORS = 20
SPREAD = "begins an object that does not end on this line; write each object on one line"
EXAMPLE = '{"prompt": "...", "completion": "..."}'
# What other tools call our fields, for the remedy.
_ELSEWHERE = {
    "instruction": "prompt",
    "question": "prompt",
    "output": "completion",
    "response": "completion",
    "answer": "completion",
    "conversations": "messages",
}
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
    """What is wrong with one line; lines count from 1."""

    line: int
    message: str


class FormatError(ValueError):
    """A file that cannot be trained on: its first bad lines with reasons."""

    def __init__(self, errors: list[LineError]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"line {error.line}: {error.message}" for error in errors))


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat; a `weight` of 0 keeps an assistant's turn out of the loss."""

    role: str
    content: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Chat:
    """A row of the format `chat`."""

    messages: tuple[Message, ...]

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of `role: content` lines, the plain rendering of a chat."""
        return sum(len(turn.role) + len(turn.content.encode()) + 3 for turn in self.messages)


@dataclass(frozen=True, slots=True)
class PromptCompletion:
    """A row of the format `prompt_completion`."""

    prompt: str
    completion: str

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of both texts."""
        return len(self.prompt.encode()) + len(self.completion.encode())


Row = Chat | PromptCompletion
FORMATS: dict[type[Row], str] = {Chat: "chat", PromptCompletion: "prompt_completion"}


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a good file holds. `lengths`: (bytes, rows) in rising order, bytes the bucket's upper bound."""

    rows: int
    format: str
    lengths: tuple[tuple[int, int], ...]
    text_bytes: int


def check(lines: BinaryIO, *, max_line_bytes: int = 1_000_000, max_rows: int = 10_000_000) -> FileFacts:
    """The facts of an uploaded file, read as a stream. Raises FormatError with the first 20 bad lines."""
    bounds = _bucket_bounds(max_line_bytes)
    buckets: Counter[int] = Counter()
    count = text_bytes = 0
    for row in _checked(lines, max_line_bytes):
        count += 1
        if count > max_rows:
            raise FormatError([LineError(count, f"the file has more than {max_rows} rows; split it")])
        size = row.text_bytes
        text_bytes += size
        buckets[bounds[min(bisect_left(bounds, size), len(bounds) - 1)]] += 1
        form = FORMATS[type(row)]
    return FileFacts(count, form, tuple(sorted(buckets.items())), text_bytes)


def rows(path: Path) -> Iterator[Row]:
    """The rows of a file, in order. Raises FormatError as `check` does, after the rows before the error."""
    with path.open("rb") as lines:
        yield from _checked(lines, 2**30)


def _checked(lines: BinaryIO, max_line_bytes: int) -> Iterator[Row]:
    """Yield rows until the first bad line, then only collect errors; at least one row or an error."""
    errors: list[LineError] = []
    form: type[Row] | None = None
    for number, line in _lines(lines, max_line_bytes):
        try:
            row = parse_row(line)
            form = form or type(row)
            if type(row) is not form:
                raise ValueError(f"is {FORMATS[type(row)]}, but the lines before are {FORMATS[form]}")
        except ValueError as wrong:
            errors.append(LineError(number, str(wrong)))
            if len(errors) == MAX_ERRORS:
                break
        else:
            if not errors:
                yield row
    if form is None and not errors:
        errors.append(LineError(1, "the file is empty; it needs at least one row"))
    if errors:
        raise FormatError(errors)


def _lines(lines: BinaryIO, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Numbered lines without blank ones. What makes the whole file unreadable is raised at once."""
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


def parse_row(line: bytes) -> Row:
    """One line as a row. Raises ValueError with a sentence that names the field."""
    raw = _object(line)
    if "messages" in raw:
        if "prompt" in raw or "completion" in raw:
            raise ValueError("has both messages and prompt or completion; keep one of them")
        return Chat(_messages(raw["messages"]))
    if "prompt" not in raw and "completion" not in raw:
        raise ValueError("needs the field messages, or the fields prompt and completion" + _renaming(raw))
    return PromptCompletion(_text(raw, "prompt"), _text(raw, "completion"))


def _object(line: bytes) -> dict[str, Any]:
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


def _renaming(raw: dict[str, Any]) -> str:
    renamed = [f"{name} to {ours}" for name, ours in _ELSEWHERE.items() if name in raw]
    return f"; rename {', '.join(renamed)}" if renamed else ""


def _text(raw: dict[str, Any], field: str, path: str = "") -> str:
    value = raw.get(field)
    if value is None:
        raise ValueError(f"{path}{field} is missing")
    if not isinstance(value, str):
        raise ValueError(f"{path}{field} must be a text")
    if not value.strip():
        raise ValueError(f"{path}{field} is empty")
    if "\x00" in value:
        raise ValueError(f"{path}{field} holds the character NUL; remove it")
    if not value.isascii() and strict_json.UNSTORABLE.search(value):
        raise ValueError(f"{path}{field} holds half a surrogate pair, which is not a character")
    return value


def _messages(raw: Any) -> tuple[Message, ...]:
    if not isinstance(raw, list) or not raw:
        raise ValueError("messages must be a list of at least one message")
    turns = tuple(_message(entry, f"messages[{index}]") for index, entry in enumerate(raw))
    if turns[-1].role != "assistant":
        raise ValueError(f"the last message must be the assistant's, not the {turns[-1].role}'s")
    if not any(turn.weight for turn in turns if turn.role == "assistant"):
        raise ValueError("every assistant message has weight 0; there is nothing to learn")
    return turns


def _message(raw: Any, path: str) -> Message:
    if not isinstance(raw, dict):
        raise ValueError(f"{path} must be an object with role and content")
    role = raw.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise ValueError(f"{path}.role must be one of {', '.join(ROLES)}")
    weight = raw.get("weight", 1)
    if isinstance(weight, bool) or weight not in (0, 1):
        raise ValueError(f"{path}.weight must be 0 or 1")
    if raw.get("tool_calls") and not raw.get("content"):
        raise ValueError(f"{path} calls a tool and says nothing; give it a content or leave the row out")
    return Message(role, _text(raw, "content", f"{path}."), int(weight))


def _bucket_bounds(highest: int) -> list[int]:
    """Upper bounds of length buckets, 8 % apart and exact for the shortest: about 160 up to a megabyte."""
    bounds = [1]
    while bounds[-1] < highest:
        bounds.append(min(highest, max(bounds[-1] + 1, bounds[-1] * 108 // 100)))
    return bounds
