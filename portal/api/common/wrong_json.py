"""Places and remedies of what is wrong in a JSON body.

A body is read twice only if it is refused: first strictly, then leniently to find the field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from trainer.strict_json import UNSTORABLE, RefusedJson, check_texts

LONGEST_NAME, LONGEST_PATH = 50, 200
BOM = b"\xef\xbb\xbf"
_FINITE = "give a finite number, or leave the field out"
# By the beginning of what Python's reader says.
_REMEDIES = {
    "Expecting value": "put a value there: a text in double quotes, a number, true, false, null, a list or an"
    " object, and no comma after the last one",
    "Expecting property name": "put each name in double quotes, and no comma after the last value",
    "Illegal trailing comma": "put no comma after the last value",
    "Expecting ':'": "put a colon between a name and its value",
    "Expecting ','": "put a comma between two values, and close each bracket and text",
    "Extra data": "send one JSON value with nothing after it",
    "Unterminated string": "end the text with a double quote",
    "Invalid control character": "write a line break as \\n and a tab as \\t",
    "Invalid \\": "write a backslash in a text as two",
}


class _Odd(NamedTuple):
    """A value that strict JSON does not have, and what is wrong about it."""

    problem: str


_Place = tuple["_Place | None", str]  # of what it lies in, and its name there


def syntax_problem(raw: bytes, wrong: json.JSONDecodeError) -> str:
    """Where a body stops being JSON, and what to do about it."""
    if raw.startswith(BOM):
        return "The body begins with a byte order mark; save it as UTF-8 without one."
    if not raw.strip():
        return "The body is empty; send a JSON object."
    remedy = next((text for begins, text in _REMEDIES.items() if wrong.msg.startswith(begins)), "correct it")
    said = wrong.msg[0].lower() + wrong.msg[1:].removesuffix(" at")
    return f"The body is not valid JSON at line {wrong.lineno}, column {wrong.colno}: {said}; {remedy}."


def odd_field(raw: bytes) -> tuple[str, str] | None:
    """The first field whose value is no JSON, and its problem; None for none.

    A body as a whole is the field of an empty name.
    """
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    for place, one in _walk(value):
        if isinstance(one, _Odd):
            return _path(place), one.problem
        if isinstance(one, str) and (problem := _unstorable(one)):
            return _path(place), problem
    return None


def _walk(value: Any) -> Iterator[tuple[_Place | None, Any]]:
    """All values within one, in their order."""
    left: list[tuple[_Place | None, Any]] = [(None, value)]
    while left:
        place, one = left.pop()
        yield place, one
        if isinstance(one, dict):
            left.extend(((place, name), inner) for name, inner in reversed(one.items()))
        elif isinstance(one, list):
            left.extend(((place, str(index)), one[index]) for index in reversed(range(len(one))))


def _path(place: _Place | None) -> str:
    names = list[str]()
    while place is not None:
        place, name = place
        names.append(name[:LONGEST_NAME])
    return ".".join(reversed(names))[:LONGEST_PATH]


def _unstorable(text: str) -> str:
    try:
        check_texts(text)
    except RefusedJson as wrong:
        return f"{wrong}; remove it"
    return ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, value in pairs:
        if _unstorable(name):
            name, value = UNSTORABLE.sub("\ufffd", name), _Odd("has a name that is no text; remove it")
        table[name] = _Odd("is there twice; keep one of them") if name in table else value
    return table


def _float(digits: str) -> float | _Odd:
    value = float(digits)
    return value if math.isfinite(value) else _Odd(f"is {digits[:20]}, which is too large; {_FINITE}")


def _int(digits: str) -> int | _Odd:
    try:
        return int(digits)
    except ValueError:  # Python converts no longer ones
        return _Odd("holds a number of thousands of digits; give a smaller one")


def _constant(name: str) -> _Odd:
    return _Odd(f"is {name}, which is not JSON; {_FINITE}")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
)
