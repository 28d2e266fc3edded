"""Predictions for models of which only the size is known, by their name.

They have the facts of the catalogue's model nearest in size, and wider intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.catalogue.fallback import model_like, parameters_of
from knowledge.core.domain.types import Interval, Option
from knowledge.core.predict.base import fit_probability
from trainer.protocol import RANDOM_MODEL

# Four fifths of the differences in ln between physics of a catalogued model and of the one that would stand
# in for it, were its whole architecture unknown: benchmarks/knowledge/borrowed_facts.py.
PEAK_WIDTH, RATE_WIDTH = 0.20, 0.28


def stand_in(name: str, catalogue: Catalogue) -> str:
    """Return the catalogue's model whose facts a model that it lacks may borrow.

    Empty if the catalogue has the model, or its name states no size.
    """
    if catalogue.known_model(name) is not None or parameters_of(name) is None:
        return ""
    return model_like(name, catalogue).model_name


def with_borrowed(catalogue: Catalogue, name: str, lender: str) -> Catalogue:
    """The catalogue in which the model has the lender's facts."""
    bare = name.removeprefix(RANDOM_MODEL)
    return catalogue.with_added({bare: replace(catalogue.model(lender), model_name=bare)})


def widened(options: Sequence[Option]) -> tuple[Option, ...]:
    """The options with the intervals and chances of borrowed facts."""
    return tuple(
        replace(
            option,
            tokens_per_second=_wider(option.tokens_per_second, RATE_WIDTH),
            duration_s=_wider(option.duration_s, RATE_WIDTH),
            cost=_wider(option.cost, RATE_WIDTH),
            peak_memory_bytes=_wider(option.peak_memory_bytes, PEAK_WIDTH),
            p_valid=min(option.p_valid, _chance(option)),
            outside=True,
        )
        for option in options
    )


def _chance(option: Option) -> float:
    if not option.gpu_memory_bytes or not option.peak_memory_bytes.value:
        return 1.0
    room = option.gpu_memory_bytes / option.peak_memory_bytes.value
    return float(fit_probability(np.array(room), math.exp(PEAK_WIDTH)))


def _wider(interval: Interval, width: float) -> Interval:
    """The interval with the borrowing's errors, which add up in quadrature in ln.

    A bound that is unknown is that of the borrowing alone.
    """
    value = interval.value
    if not value:
        return interval
    low, high = (abs(math.log(bound / value)) if bound else 0.0 for bound in (interval.low, interval.high))
    return Interval(
        value, value / math.exp(math.hypot(low, width)), value * math.exp(math.hypot(high, width))
    )
