"""Input made to cost much.

For each parser its worst texts, up to the largest size that it is given.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


def repeated(piece: str, size: int, between: str = ",") -> str:
    """As often as fits into `size` characters."""
    return between.join([piece] * (size // (len(piece) + len(between))))


@cache  # several tests read them; those of some megabytes take a second to make
def json_texts(size: int) -> dict[str, str]:
    """Return JSON texts, or near misses, by their peculiarity.

    Each has about `size` characters.
    """
    keys = ",".join(f'"a{number}":0' for number in range(size // 12))
    return {
        "many keys": f"{{{keys}}}",
        "the last of many keys twice": f'{{{keys},"a{size // 12 - 1}":0}}',
        "one key all the time": f"{{{repeated(chr(34) + 'a' + chr(34) + ':0', size)}}}",
        "lists": f"[{repeated('[]', size)}]",
        "objects": f"[{repeated('{}', size)}]",
        "lists in lists": f"[{repeated('[' * 30 + ']' * 30, size)}]",
        "numbers": f"[{repeated('0', size)}]",
        "long numbers": f"[{repeated('9' * 4000, size)}]",
        "one long number": "9" * size,
        "one long fraction": f"0.{'1' * size}",
        "one long exponent": f"1e{'0' * size}1",
        "texts": f"[{repeated(json.dumps('a'), size)}]",
        "escapes": f'"{repeated(chr(92) + "u0041", size, "")}"',
        "quotes that are escaped": f'"{repeated(chr(92) + chr(34), size, "")}"',
        "a text that does not end": f'"{"x" * size}',
        "brackets": "[" * size,
        "objects in objects": repeated('{"a":', size, ""),
        "commas": "," * size,
        "blanks": " " * size,
        "backslashes": "\\" * size,
    }


JSON_KINDS = tuple(json_texts(10))


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Fail if this process computes for longer than `seconds`.

    The bound is generous, as only a wrong order of growth must show.
    """
    began = time.process_time()
    yield
    spent = time.process_time() - began
    assert spent < seconds, f"took {spent:.1f} s of computing"


def peak_bytes(work: Callable[[], Any]) -> int:
    """The most memory that Python's objects took meanwhile, beyond what was there."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
