"""Lines of forms that no rule knows: which of their numbers is the step.

A language model says so. It never writes an expression that is run: it points at numbers of a line, so that a
learnt form is matched in linear time, and it counts only if the lines at hand bear it out.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from knowledge.reading.failures.troubled_lines import LONGEST, LogLine
from knowledge.reading.logs.line_forms import LogPoint
from knowledge.reading.manifest import blanked

FIRST_LINES, LEAST_LINES = 200, 3  # of a log; of one form
MOST_FORMS, MOST_SAMPLES = 3, 8
MOST_NUMBERS = 40  # of a line; a longer row is no progress
MOST_STEPS = 10**9
_NUMBER = re.compile(
    r"(?<![\w.])(?:\d{1,4}(?::\d\d){1,2}(?:\.\d{1,9})?(?![\d:])|\d{1,18}(?:\.\d{1,18})?(?:[eE][-+]?\d{1,3})?)(?![\d.]\d)"
)
_WORD = re.compile(r"[^\W\d_]")
_SPACE = re.compile(r"\s+")
Shapes = Mapping[str, "LogShape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogShape:
    """Which number of a line, from 0, is the step, the total, the loss and the time."""

    step: int
    total: int | None = None
    loss: int | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownForm:
    """Lines of one form in which no rule finds a step."""

    digest: str
    samples: Sequence[str]


def numbers_of(text: str) -> list[str]:
    """The numbers of a line, in order; `1:02:03` is one."""
    return _NUMBER.findall(text[:LONGEST])


def digest_of(text: str) -> str:
    """The form of a line: its words, whatever its numbers are."""
    form = _SPACE.sub(" ", _NUMBER.sub("#", text[:LONGEST])).strip()
    return hashlib.sha256(form.encode()).hexdigest()


def unknown_forms(lines: Sequence[LogLine]) -> list[UnknownForm]:
    """The most frequent forms with numbers among the first lines.

    Lines with secrets are left out.
    """
    forms: dict[str, list[str]] = {}
    for line in lines[:FIRST_LINES]:
        text = line.text[:LONGEST]
        if 0 < len(numbers_of(text)) <= MOST_NUMBERS and _WORD.search(text) and blanked(text) == text:
            forms.setdefault(digest_of(text), []).append(text)
    many = sorted(forms.items(), key=lambda one: -len(one[1]))[:MOST_FORMS]
    return [
        UnknownForm(digest=digest, samples=texts[:MOST_SAMPLES])
        for digest, texts in many
        if len(texts) >= LEAST_LINES
    ]


def point_by(line: LogLine, shapes: Shapes) -> LogPoint | None:
    """Read a line by the learnt forms."""
    shape = shapes.get(digest_of(line.text))
    return _point(line, shape) if shape else None


def bears_out(shape: LogShape, samples: Sequence[str]) -> bool:
    """Whether lines speak for a form.

    The steps have to rise within the total, and the time must not run back.
    """
    points = [_point(LogLine(number, text), shape) for number, text in enumerate(samples)]
    known = [one for one in points if one is not None and one.step is not None]
    if len(known) < max(LEAST_LINES, len(samples)):
        return False
    steps = [one.step or 0 for one in known]
    times = [one.seconds for one in known if one.seconds is not None]
    totals = {one.total for one in known}
    places = _places(shape)
    return (
        len(set(places)) == len(places)
        and all(one < other for one, other in pairwise(steps))
        and len(totals) == 1
        and all(total is None or max(steps) <= total <= MOST_STEPS for total in totals)
        and times == sorted(times)
    )


def _places(shape: LogShape) -> list[int]:
    return [at for at in (shape.step, shape.total, shape.loss, shape.seconds) if at is not None]


def _point(line: LogLine, shape: LogShape) -> LogPoint | None:
    numbers = numbers_of(line.text)
    if not all(0 <= at < len(numbers) for at in _places(shape)):
        return None
    step, total = _whole(numbers[shape.step]), None if shape.total is None else _whole(numbers[shape.total])
    if step is None or (shape.total is not None and total is None):
        return None
    return LogPoint(
        line=line,
        step=step,
        total=total,
        loss=None if shape.loss is None else _finite(numbers[shape.loss]),
        seconds=None if shape.seconds is None else _finite(numbers[shape.seconds]),
    )


def _whole(number: str) -> int | None:
    return int(number) if number.isdigit() and int(number) <= MOST_STEPS else None


def _finite(number: str) -> float | None:
    """`62.5`, or `1:02:03` in seconds."""
    seconds = 0.0
    for part in number.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds if math.isfinite(seconds) else None
