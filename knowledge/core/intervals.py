"""Split conformal intervals: how far off predictions were on rows they were not trained on.

Sources: Vovk; Lei et al. 2018. Residuals are |ln measured - ln predicted|, so an interval is a factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.core.columns import Array

ALPHA = 0.2  # 80 % intervals
ENOUGH = 20  # residuals of one (method, GPU) before it gets a table of its own


def quantile(residuals: Sequence[float] | Array, alpha: float = ALPHA) -> float:
    """The k-th smallest residual, k = ceil((n+1)(1-α)); infinite if k > n, that is unknown."""
    ordered = np.sort(np.asarray(residuals, dtype=float))
    place = math.ceil((len(ordered) + 1) * (1 - alpha))
    return float(ordered[place - 1]) if place <= len(ordered) else math.inf


@dataclass(frozen=True, slots=True)
class Widths:
    """Half-widths of ln(prediction) by (method, GPU); kinds with too few residuals use the pooled one."""

    pooled: float
    by_kind: Mapping[str, float]

    @classmethod
    def of(cls, residuals: Array, kinds: Sequence[str]) -> Widths:
        """Tables from out-of-fold residuals, shape (n,), and each row's kind."""
        tables: dict[str, list[float]] = {}
        for kind, residual in zip(kinds, residuals, strict=True):
            tables.setdefault(kind, []).append(float(residual))
        known = {kind: quantile(values) for kind, values in tables.items() if len(values) >= ENOUGH}
        return cls(quantile(residuals), known)

    def look_up(self, kinds: Sequence[str]) -> Array:
        """Each row's half-width, shape (n,)."""
        return np.array([self.by_kind.get(kind, self.pooled) for kind in kinds], dtype=float)
