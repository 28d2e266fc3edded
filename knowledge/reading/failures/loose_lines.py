"""The last lines of a log, in whatever form they are.

They are asked where no line in the form of an error tells a cause: launchers, notebooks and people put an
error behind words of their own. Lines before the training's last advance, warnings and quoted rows stay out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from knowledge.reading.failures.troubled_lines import (
    LONGEST,
    LogLine,
    TroubledLine,
    bare_message,
    is_warning,
    last_advance,
    without_consequences,
)

LAST = 60  # lines
_QUOTED = ("{", '"', "'")
_CODE = re.compile(r"^(?:-+>|\s*\d+ |from |import )")  # lines of a program that a notebook shows
_INFORMS = re.compile(r"\b(?:INFO|DEBUG|NOTSET)\b|^\W{0,3}(?:\[?rank\d+\]:\W{0,2})?[IWD] ?\d{3,4} \d\d:\d\d")
_WITHIN = re.compile(
    r"(?:^|[^\w.])(?:[A-Za-z_]\w{0,60}\.){0,8}(?P<name>[A-Z]\w{1,60}(?:Error|Exception))"
    r"(?=[:()]| occurred|\s{2,40}Traceback \()"
)
_IN_JSON = re.compile(r'^"e?name": "(?P<name>[A-Z]\w{1,60}(?:Error|Exception))"')  # an editor's


def loose_lines(lines: Sequence[LogLine]) -> list[TroubledLine]:
    """Return the last lines; of each, the error that stands anywhere in it."""
    advanced = last_advance(lines)
    late = [line for line in without_consequences(lines) if line.number >= advanced]
    return list(_loose(late[-LAST:]))


def _loose(lines: Sequence[LogLine]) -> Iterator[TroubledLine]:
    for line in lines:
        message = bare_message(line.text)
        if match := _IN_JSON.match(message):
            yield TroubledLine(line, match["name"], match["name"])
        elif message and not _is_no_trouble(line.text[:LONGEST], message):
            match = _WITHIN.search(message)
            yield TroubledLine(line, message, match["name"] if match else "")


def _is_no_trouble(text: str, message: str) -> bool:
    quotes = message.startswith(_QUOTED) or bool(_CODE.match(text))
    return quotes or bool(_INFORMS.search(text)) or is_warning(message)
