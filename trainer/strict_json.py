"""Strict and bounded reading of JSON.

Text that two readers might understand differently is refused. Standard library only: all of the
portal reads with it, and so does the check of training data. Time and memory grow with the
length, which the caller bounds, and with nothing else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, NoReturn, TypeGuard

MAX_DEPTH = 32
MAX_VALUES = 100_000  # what is short as text takes up to 100 bytes of memory, and has to be walked through
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL and lone surrogates: no database keeps them everywhere
# Up to the next comma or opening bracket outside texts, or the end. Possessive, and the closing quote may be
# missing: it matches wherever it begins, so that nothing is looked at twice.
_NEXT_VALUE = re.compile(r"""(?:[^",[{]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:[,[{]|\Z)""", re.DOTALL)


class RefusedJson(ValueError):
    """A text that is not read, with the reason.

    The reason says what the text does, as in "holds NaN, which is not JSON".
    """


class Excess(RefusedJson):
    """The text holds more values than are read at once."""


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of JSON: neither true nor 3.0 is one."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number of JSON; true is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def loads(raw: bytes | str, *, max_values: int = MAX_VALUES, max_depth: int = MAX_DEPTH) -> Any:
    """The value of a JSON text without duplicate keys, NaN, infinities or excess.

    Raises json.JSONDecodeError where it is no JSON, and Refused for what a lenient reader would let pass.
    """
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
    except UnicodeDecodeError as foreign:
        raise RefusedJson(f"is not UTF-8 (byte {foreign.start + 1})") from None
    openings = text.count("[") + text.count("{")
    if openings + text.count(",") > max_values and _count_values(text, max_values) > max_values:
        raise Excess(f"is nested too deeply or holds more than {max_values:,} values")
    value = _decoded(text)
    if openings > max_depth:
        _check_depth(value, max_depth)
    return value


def _count_values(text: str, most: int) -> int:
    """An upper bound on the number of values; most + 1 for all above."""
    return sum(1 for _ in islice(_NEXT_VALUE.finditer(text), most + 1))


def _decoded(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise RefusedJson("is nested too deeply") from None
    except (json.JSONDecodeError, RefusedJson):
        raise
    except ValueError:  # Python converts no longer ones
        raise RefusedJson("holds a number of thousands of digits") from None


def _check_depth(value: Any, deepest: int) -> None:
    level = [value]
    for _ in range(deepest):
        level = [one for outer in level for one in _inside(outer) if isinstance(one, dict | list)]
        if not level:
            return
    raise RefusedJson(f"is nested too deeply: more than {deepest} levels")


def check_texts(value: Any) -> None:
    """Raises RefusedJson for texts and keys that no database stores everywhere."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str) and (odd := UNSTORABLE.search(one)):
            half = "half a surrogate pair, which is not a character"
            raise RefusedJson(f"holds {'a NUL character' if odd.group() == chr(0) else half}")
        if isinstance(one, dict):
            left.extend(one)
        left.extend(_inside(one))


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise RefusedJson(f"holds {_twin(pairs)[:50]} twice in one object; keep one of them")
    return table


def _twin(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    raise ValueError("no key is there twice")


def _no_constant(name: str) -> NoReturn:
    raise RefusedJson(f"holds {name}, which is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise RefusedJson(f"holds the number {digits[:20]}, which is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)
