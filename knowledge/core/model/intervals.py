"""Split conformal intervals.

They follow from how far off predictions were on rows they were not trained on. Sources: Vovk;
Lei et al. 2018. Residuals are |ln measured - ln predicted|, so an interval is a factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from knowledge.core.domain.arrays import Array

ALPHA = 0.2  # 80 % intervals
ENOUGH = 20  # residuals of one (tuning, GPU), or GPU, before it gets a width of its own


def quantile(residuals: Sequence[float] | Array, alpha: float = ALPHA) -> float:
    """Return the k-th smallest residual, k = ceil((n+1)(1-α)).

    It is infinite, that is unknown, if k > n.
    """
    ordered = np.sort(np.asarray(residuals, dtype=float))
    place = math.ceil((len(ordered) + 1) * (1 - alpha))
    return float(ordered[place - 1]) if place <= len(ordered) else math.inf


@dataclass(frozen=True, slots=True)
class Widths:
    """Half-widths of ln(prediction) by kind, that is (tuning, GPU), and by GPU.

    Kinds with few residuals use the half-width of their GPU, or that of all rows.
    """

    pooled: float
    by_kind: Mapping[str, float]
    by_gpu: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, residuals: Array, kinds: Sequence[str], gpus: Sequence[str] = ()) -> Widths:
        """Build the tables from out-of-fold residuals, shape (n,).

        kinds: of each row.
        gpus: of each row, if GPUs count too.
        """
        of_gpus = _quantiles(residuals, gpus, ENOUGH) if gpus else {}
        return cls(quantile(residuals), _quantiles(residuals, kinds, ENOUGH), of_gpus)

    def look_up(self, kinds: Sequence[str], gpus: Sequence[str] = ()) -> Array:
        """Each row's half-width, shape (n,)."""
        wider = [self.by_gpu.get(gpu, self.pooled) for gpu in gpus] or [self.pooled] * len(kinds)
        pairs = zip(kinds, wider, strict=True)
        return np.array([self.by_kind.get(kind, width) for kind, width in pairs], dtype=float)


def _quantiles(residuals: Array, groups: Sequence[str], enough: int) -> dict[str, float]:
    tables: dict[str, list[float]] = {}
    for group, residual in zip(groups, residuals, strict=True):
        tables.setdefault(group, []).append(float(residual))
    return {group: quantile(values) for group, values in tables.items() if len(values) >= enough}
