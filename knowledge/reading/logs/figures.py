"""Figures of a training, read from its log.

Known are the lines of this trainer, tqdm's bars, Hugging Face's dictionaries, Lightning, DeepSpeed and plain
`step 10/100 loss=2.1`, with or without a moment at the beginning of the line.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from knowledge.reading.failures.troubled_lines import LONGEST, LogLine

MOST_POINTS = 20_000  # the last ones
MOST_WARNINGS = 5  # the first ones are shown
RATE_OVER = 20  # differences

_BAR = re.compile(r"(?<![\d/])(\d{1,9})/(\d{1,9}) \[(\d{1,4}(?::\d\d){1,2})<")
_STEP = re.compile(r"\b(?:step|iter|iteration)s?\s?[:=]?\s?(\d{1,9})(?:\s?(?:/|of)\s?(\d{1,9}))?\b", re.I)
_LOSS = re.compile(
    r"(?<!validation )(?<!eval )(?<![\w-])(?:train_|train/|lm )?loss['\"]?\s?[:=]?\s?"
    r"(nan|-?inf|-?\d{1,20}(?:\.\d{0,20})?(?:e[-+]?\d{1,3})?)(?![\w.])",
    re.I,
)
_TOKENS = re.compile(r"(?<![\d,.])(\d[\d,]{0,14}(?:\.\d{1,9})?) ?(?:tokens/s\b|tok/s\b)")
_STAMP = re.compile(r"^\W{0,2}(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)")
_WARNING = re.compile(r"\bwarn(?:ing)?\b|Warning:", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPoint:
    """What one line tells; None for what it does not tell.

    seconds: since some fixed moment.
    """

    line: LogLine
    step: int | None = None
    total: int | None = None
    loss: float | None = None
    seconds: float | None = None
    tokens_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFigures:
    """The points of the training itself, without bars of other work.

    warnings: the first ones of `warnings_count`.
    """

    points: Sequence[LogPoint]
    warnings: Sequence[LogLine]
    warnings_count: int
    last: LogLine | None

    @property
    def furthest(self) -> LogPoint | None:
        return max((one for one in self.points if one.step is not None), key=_step, default=None)

    @property
    def losses(self) -> list[LogPoint]:
        return [one for one in self.points if one.loss is not None]

    @property
    def steps_per_s(self) -> float | None:
        """The median over the last differences.

        None without two moments of different steps.
        """
        timed = [one for one in self.points if one.step is not None and one.seconds is not None]
        rates = [
            (_step(new) - _step(old)) / (new.seconds - old.seconds)
            for old, new in pairwise(timed)
            if new.seconds is not None and old.seconds is not None
            if _step(new) > _step(old) and new.seconds > old.seconds
        ]
        return median(rates[-RATE_OVER:]) if rates else None

    @property
    def remaining_s(self) -> float | None:
        """The steps that are left at the rate of the log."""
        at, rate = self.furthest, self.steps_per_s
        if at is None or at.total is None or rate is None:
            return None
        return max(0, at.total - _step(at)) / rate

    @property
    def tokens_per_s(self) -> LogPoint | None:
        """The last line with a throughput."""
        return next((one for one in reversed(self.points) if one.tokens_per_s is not None), None)


def read_figures(lines: Iterable[LogLine]) -> LogFigures:
    """Read a log line by line; it may be of any length."""
    points: deque[LogPoint] = deque(maxlen=MOST_POINTS)
    warnings: list[LogLine] = []
    count, last = 0, None
    for line in lines:
        text = line.text[:LONGEST]
        if text.strip():
            last = line
        if point := _point(line, text):
            points.append(point)
        elif _WARNING.search(text):
            count += 1
            warnings += [line] if len(warnings) < MOST_WARNINGS else []
    return LogFigures(points=_of_training(list(points)), warnings=warnings, warnings_count=count, last=last)


def _step(point: LogPoint) -> int:
    return point.step or 0


def _point(line: LogLine, text: str) -> LogPoint | None:
    bar, step, loss = _BAR.search(text), _STEP.search(text), _LOSS.search(text)
    tokens, stamp = _TOKENS.search(text), _STAMP.match(text)
    count = bar or (step if loss or (step and step[2]) else None)
    if not count and not loss:
        return None
    return LogPoint(
        line=line,
        step=int(count[1]) if count else None,
        total=int(count[2]) if count and count[2] else None,
        loss=float(loss[1]) if loss else None,
        seconds=_elapsed(bar[3]) if bar else _moment(stamp),
        tokens_per_s=float(tokens[1].replace(",", "")) if tokens else None,
    )


def _elapsed(clock: str) -> float:
    """`1:02:03` or `02:03` as seconds."""
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


def _moment(stamp: re.Match[str] | None) -> float | None:
    if stamp is None:
        return None
    try:
        return datetime.fromisoformat(f"{stamp[1]}T{stamp[2]}").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _of_training(points: list[LogPoint]) -> list[LogPoint]:
    """Leave out bars of other work: the training's own spans the most lines."""
    spans: dict[int, list[int]] = {}
    for one in points:
        if one.total is not None:
            spans.setdefault(one.total, []).append(one.line.number)
    if not spans:
        return points
    own = max(spans, key=lambda total: (spans[total][-1] - spans[total][0], total))
    return [one for one in points if one.total in (own, None)]
