"""Fitting the weights of physical parts to what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from knowledge.core.domain.arrays import Array, Mask

BOUND = 12.0  # weights stay between e^-12 and e^12


def fit_weights(
    predict: Callable[[Array], Array],
    parts: int,
    measured: Array,
    groups: Sequence[str],
    robust: float,
    spread: float,
) -> Array:
    """Fit weights whose predictions come close to the measured values in logarithms.

    The weights have shape (parts,). `predict` maps weights to positive values of shape (n,), as
    `measured` has. Errors beyond `robust` count linearly; rows of one group count together as one;
    weights are pulled towards the stated ones, that is 1, from which their logarithms lie `spread` away.
    """
    from scipy.optimize import least_squares  # only trainings need it, and it takes a third of a second

    counts = Counter(groups)
    importance = np.array([counts[group] ** -0.5 for group in groups])
    target = np.log(measured)

    def off(logs: Array) -> Array:
        error = (np.log(predict(np.exp(logs))) - target) / robust
        soft = np.sign(error) * np.sqrt(2 * (np.sqrt(1 + error**2) - 1))
        return np.concatenate([importance * soft, logs / spread])

    found = least_squares(off, np.zeros(parts), bounds=(-BOUND, BOUND), max_nfev=60)
    weights: Array = np.exp(found.x)
    return weights


def masked(mask: Mask, amounts: Array) -> list[Array]:
    """A part with a weight of its own where the mask holds."""
    return [np.where(mask, amounts, 0.0), np.where(mask, 0.0, amounts)]


def shares(parts: Array, weights: Array, total: Array) -> Array:
    """Each weighted part's share of the total, shape (n, k)."""
    found: Array = parts * weights / total[:, None]
    return found
