"""Figures of a training, read from its log.

Known are the lines of this trainer, tqdm's bars, Hugging Face's dictionaries, LLaMA-Factory, ms-swift,
Lightning, DeepSpeed, Megatron, nanoGPT, MLX, plain `step 10/100 loss=2.1` and `Epoch 2/60 [62.7s]`, with or
without a moment in the line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from knowledge.reading.failures.troubled_lines import LONGEST, LogLine
from knowledge.reading.logs.counting import counted_by_epochs, of_training, over_epochs
from knowledge.reading.logs.formats import Shapes, point_by
from knowledge.reading.logs.line_forms import LogPoint, point_of, total_said
from knowledge.reading.logs.pauses import pauses_s

MOST_POINTS = 20_000  # the last ones
MOST_WARNINGS = 5  # the first ones are shown
RATE_OVER = 20  # differences
APART_S = 10  # at least, of two moments: logs tell whole seconds

_EVALUATION = re.compile(
    r"\beval_(?:loss|runtime)['\"]?\s?[:=]\s?['\"]?\d|\bvalidation loss\s?[:=]?\s?\d|\bRunning Evaluation\b",
    re.I,
)
_WARNING = re.compile(r"\bwarn(?:ing)?\b|Warning:", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFigures:
    """The points of the training itself, without bars of other work.

    warnings: the first ones of `warnings_count`. announced: the steps that the log said it would make.
    by_epochs: the log tells the number of epochs, and not of steps, so that epochs count as the steps of its
    points; step_rate: of the steps beside them. evaluations: the numbers of the lines that tell of one.
    """

    points: Sequence[LogPoint]
    warnings: Sequence[LogLine]
    warnings_count: int
    last: LogLine | None
    announced: int | None = None
    by_epochs: bool = False
    step_rate: float | None = None
    evaluations: Sequence[int] = ()

    @property
    def furthest(self) -> LogPoint | None:
        return max((one for one in self.points if one.step is not None), key=_step, default=None)

    @property
    def losses(self) -> list[LogPoint]:
        return [one for one in self.points if one.loss is not None]

    @property
    def total(self) -> int | None:
        """The number of steps; None where the log tells at most those of an epoch."""
        at = self.furthest
        if at is None or (at.epoch is not None and at.epochs is None):
            return None
        return at.total or self.announced

    @property
    def steps_per_s(self) -> float | None:
        """The speed, also of steps beside whole epochs."""
        return self.step_rate if self.by_epochs else self.counts_per_s

    @property
    def counts_per_s(self) -> float | None:
        """The median over the last differences, else of what the lines say themselves.

        It counts steps, or epochs where the log tells of no other.
        """
        return _speed(self.points)

    @property
    def remaining_s(self) -> float | None:
        """Seconds that the steps left take, with the pauses that recur."""
        return None if self.total is None else self.seconds_to(self.total)

    def seconds_to(self, step: int) -> float | None:
        """Seconds until a later step, with the pauses that recur."""
        at, rate = self.furthest, self.counts_per_s
        if at is None or not rate:
            return None
        left = max(0, step - _step(at))
        return left / rate + pauses_s(_moments(self.points), rate, left, self._evaluated)

    @property
    def _evaluated(self) -> set[int]:
        """The steps at which lines tell of an evaluation: the last ones before."""
        at = [one for one in self.points if one.step is not None]
        before = (bisect_right(at, number, key=lambda one: one.line.number) for number in self.evaluations)
        return {_step(at[index - 1]) for index in before if index}

    @property
    def tokens_per_s(self) -> LogPoint | None:
        """The last line with a throughput."""
        return next((one for one in reversed(self.points) if one.tokens_per_s is not None), None)


def read_figures(lines: Iterable[LogLine], shapes: Shapes | None = None) -> LogFigures:
    """Read a log line by line; it may be of any length.

    shapes: learnt forms, of lines that no rule understands.
    """
    points: deque[LogPoint] = deque(maxlen=MOST_POINTS)
    warnings: list[LogLine] = []
    evaluations: deque[int] = deque(maxlen=MOST_POINTS)
    count, last, announced = 0, None, None
    for line in lines:
        text = line.text[:LONGEST]
        if text.strip():
            last = line
        point = point_of(line)
        if shapes and (point is None or point.step is None):
            point = point_by(line, shapes) or point
        if point:
            points.append(point)
        elif _WARNING.search(text):
            count += 1
            warnings += [line] if len(warnings) < MOST_WARNINGS else []
        announced = total_said(text) or announced
        if _EVALUATION.search(text):
            evaluations.append(line.number)
    found = list(points)
    epochs = counted_by_epochs(found)
    return LogFigures(
        points=over_epochs(of_training(found)) if epochs is None else epochs,
        warnings=warnings,
        warnings_count=count,
        last=last,
        announced=announced if epochs is None else None,
        by_epochs=epochs is not None,
        step_rate=_speed([one for one in found if one.step is not None and one.total is None]),
        evaluations=evaluations,
    )


def _speed(points: Sequence[LogPoint]) -> float | None:
    rates = _rates([one for one in points if one.step is not None and one.seconds is not None])
    rates = rates or [one.pace for one in points if one.pace is not None]
    return median(rates[-RATE_OVER:]) if rates else None


def _step(point: LogPoint) -> int:
    return point.step or 0


def _rates(timed: Sequence[LogPoint]) -> list[float]:
    """Steps a second between moments that are apart.

    Of a log that is shorter than that, between its first and its last one.
    """
    rates: list[float] = []
    begun = since = timed[0] if timed else None
    for one in timed[1:]:
        steps, seconds = _between(since, one)
        if steps < 0 or seconds < 0:  # it began anew
            begun = since = one
        elif steps > 0 and seconds >= APART_S:
            rates.append(steps / seconds)
            since = one
    steps, seconds = _between(begun, timed[-1]) if timed else (0, 0.0)
    return rates or ([steps / seconds] if steps > 0 and seconds > 0 else [])


def _moments(points: Sequence[LogPoint]) -> list[tuple[int, float]]:
    """Steps and seconds since the training last began, each once."""
    moments: list[tuple[int, float]] = []
    for one in points:
        if one.step is None or one.seconds is None:
            continue
        if moments and (one.step < moments[-1][0] or one.seconds < moments[-1][1]):
            moments = []
        if not moments or one.step > moments[-1][0]:
            moments.append((one.step, one.seconds))
    return moments


def _between(old: LogPoint | None, new: LogPoint) -> tuple[int, float]:
    if old is None or old.seconds is None or new.seconds is None:
        return 0, 0.0
    return _step(new) - _step(old), new.seconds - old.seconds
