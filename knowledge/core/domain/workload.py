"""How many tokens a job will process: row lengths, cutting, padding, steps."""

from __future__ import annotations

import math

import numpy as np

from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Workload

LENGTH_STEP = 64  # tokens_per_sample is rounded up to a multiple of this
KEPT_SHARE = 0.99  # rows that are not cut at the recommended length


def _histogram(workload: Workload, limit: int) -> tuple[Array, Array]:
    """Lengths cut at `limit` and their row counts, rising and distinct."""
    cut: dict[int, int] = {}
    for length, rows in workload.lengths:
        short = max(1, min(length, limit))
        cut[short] = cut.get(short, 0) + rows
    lengths = sorted(cut)
    return np.array(lengths, dtype=float), np.array([cut[length] for length in lengths], dtype=float)


def padded_length(workload: Workload, limit: int, batch: int) -> float:
    """Return the expected length of the longest of `batch` rows, in tokens.

    The rows are drawn without replacement and cut at `limit`. By the order statistics of a finite
    population, P(longest <= l) = C(F(l), b) / C(n, b), where F(l) is the number of rows not longer
    than l. A batch larger than the data takes all of it. Returns 0 without rows.
    """
    if not workload.lengths or workload.rows < 1:
        return 0.0
    lengths, rows = _histogram(workload, limit)
    up_to = np.cumsum(rows)
    drawn = min(float(batch), up_to[-1])
    below = np.where(up_to >= drawn, up_to, drawn)
    log_share = _log_choose(below, drawn) - _log_choose(up_to[-1], drawn)
    share = np.where(up_to >= drawn, np.exp(log_share), 0.0)
    return float(np.sum(lengths * np.diff(share, prepend=0.0)))


def _log_choose(n: Array | float, k: float) -> Array:
    from scipy.special import gammaln  # most processes never predict, and it takes a sixth of a second

    result: Array = gammaln(np.asarray(n) + 1) - gammaln(k + 1) - gammaln(np.asarray(n) - k + 1)
    return result


def steps(workload: Workload, effective_batch: int, epochs: float | None, max_steps: int | None) -> int:
    """Return the number of optimiser steps of the job.

    Epochs are laid end to end, so that every step is a whole batch.
    """
    if max_steps is not None:
        return max_steps
    return max(1, math.ceil(workload.rows * (1.0 if epochs is None else epochs) / effective_batch))


def recommended_length(workload: Workload, context: int) -> int:
    """Return the length that leaves 99 % of the rows whole.

    It is rounded up to a multiple of 64 and is at most the model's context.
    """
    if not workload.lengths:
        return min(context, 2048)
    lengths, rows = _histogram(workload, 2**31)
    at = int(np.searchsorted(np.cumsum(rows), KEPT_SHARE * rows.sum()))
    longest = lengths[min(at, len(lengths) - 1)]
    return int(min(context, math.ceil(longest / LENGTH_STEP) * LENGTH_STEP))


def kept_share(workload: Workload, limit: int) -> float:
    """Share of rows that are not longer than `limit`."""
    kept = sum(rows for length, rows in workload.lengths if length <= limit)
    return kept / workload.rows if workload.rows else 1.0


def kept_tokens(workload: Workload, limit: int) -> float:
    """Share of all tokens that are left once rows are cut at `limit`."""
    kept = sum(min(length, limit) * rows for length, rows in workload.lengths)
    return kept / workload.tokens if workload.tokens else 1.0
