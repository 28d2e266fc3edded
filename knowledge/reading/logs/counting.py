"""Steps of a training among the numbers of its log.

They may be counted in each epoch anew, or the log tells of whole epochs alone, as `Epoch 20/60 [62.7s]`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from knowledge.reading.logs.line_forms import LogPoint

ALIKE = 0.3  # of what they would be, if the seconds beside the epochs were those since the beginning
ENOUGH = 3  # epochs to tell that


def of_training(points: list[LogPoint]) -> list[LogPoint]:
    """Leave out bars of other work: the training's own spans the most lines."""
    total, _ = _longest(points)
    return points if total is None else [one for one in points if one.total in (total, None)]


def _longest(points: Sequence[LogPoint]) -> tuple[int | None, int]:
    """The total of the steps that span the most lines, and how many."""
    spans: dict[int, list[int]] = {}
    for one in points:
        if one.total is not None:
            spans.setdefault(one.total, []).append(one.line.number)
    length, total = max(
        ((numbers[-1] - numbers[0], total) for total, numbers in spans.items()), default=(0, None)
    )
    return total, length


def over_epochs(points: list[LogPoint]) -> list[LogPoint]:
    """Count the steps of all epochs where each begins anew."""
    first = min((one.epoch for one in points if one.epoch is not None), default=1)
    return [_over_all(one, min(first, 1)) for one in points]


def _over_all(one: LogPoint, first: int) -> LogPoint:
    if one.epoch is None or one.epochs is None or one.total is None:
        return one
    return replace(one, step=(one.epoch - first) * one.total + (one.step or 0), total=one.epochs * one.total)


def counted_by_epochs(points: Sequence[LogPoint]) -> list[LogPoint] | None:
    """The points with epochs as their steps; None where steps tell more.

    Steps do if the log says of how many, unless they are those of other work before the epochs.
    """
    epochs = [one for one in points if one.step is None and one.epochs is not None]
    total, lines = _longest(points)
    if not epochs or (total is not None and lines >= epochs[-1].line.number - epochs[0].line.number):
        return None
    first = min(min(one.epoch or 0 for one in epochs), 1)
    spent = _since_the_beginning(epochs)
    whole = {id(one): _whole(one, first, spent=spent) for one in epochs}
    return [whole.get(id(one), one) for one in points if id(one) in whole or one.step is None]


def _whole(one: LogPoint, first: int, *, spent: bool) -> LogPoint:
    """A finished epoch as a step. The first one may be 0."""
    pace = 1 / one.took_s if one.took_s and not spent else None
    seconds = one.took_s if spent and one.seconds is None else one.seconds
    step = (one.epoch or 0) - first + 1
    return replace(
        one, step=step, total=one.epochs, epoch=None, epochs=None, pace=pace or one.pace, seconds=seconds
    )


def _since_the_beginning(epochs: Sequence[LogPoint]) -> bool:
    """Do the seconds beside the epochs grow with their number?"""
    timed = [(one.epoch or 0, one.took_s) for one in epochs if one.took_s]
    if len(timed) < ENOUGH:
        return False
    (begun, least), (at, most) = timed[0], timed[-1]
    rising = all(new[1] > old[1] for old, new in itertools.pairwise(timed))
    wanted = (at - begun) * most / max(at, 1)
    return rising and at > begun and abs((most - least) - wanted) <= ALIKE * wanted
