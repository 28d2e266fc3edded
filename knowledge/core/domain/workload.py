"""How many tokens a job will process: row lengths, cutting, padding, steps."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Workload

LENGTH_STEP = 64  # tokens_per_sample is rounded up to a multiple of this
# Up to which the longest rows of a step are foretold exactly; more would take tens of milliseconds.
_MOST_LENGTHS, _MOST_DRAWN = 100, 512
KEPT_SHARE = 0.99  # rows that are not cut at the recommended length


def _histogram(workload: Workload, limit: int) -> tuple[Array, Array]:
    """Lengths cut at `limit` and their row counts, rising and distinct."""
    cut: dict[int, int] = {}
    for length, rows in workload.lengths:
        short = max(1, min(length, limit))
        cut[short] = cut.get(short, 0) + rows
    lengths = sorted(cut)
    return np.array(lengths, dtype=float), np.array([cut[length] for length in lengths], dtype=float)


def padded_length(workload: Workload, limit: int, micro: int, batch: int) -> float:
    """Return the mean tokens of a row as it is computed: cut at `limit`, and padded.

    The `batch` rows of a step are sorted by length and padded in groups of `micro`, each to its longest row
    (`trainer.train.plan`). Returns 0 without rows.
    """
    if not workload.lengths or workload.rows < 1:
        return 0.0
    expected = _longest_first(workload, limit, batch)
    groups = range(0, batch, micro)
    return sum(min(micro, batch - first) * float(expected[first]) for first in groups) / batch


@lru_cache(maxsize=64)
def _longest_first(workload: Workload, limit: int, batch: int) -> Array:
    """The expected lengths of the rows of a step, the longest first, shape (batch,).

    The rows are drawn without replacement from as many epochs as they fill. The k-th longest is at most l if
    fewer than k of them are longer, a number that follows the hypergeometric distribution. Of very many rows
    it is the quantile (k - 1/2) / batch of the data.
    """
    lengths, rows = _histogram(workload, limit)
    lengths, rows = _coarse(lengths, rows * math.ceil(batch / rows.sum()))
    up_to = np.cumsum(rows)
    if batch > _MOST_DRAWN:
        share = 1 - (np.arange(batch) + 0.5) / batch
        quantiles: Array = lengths[np.searchsorted(up_to, share * up_to[-1])]
        return quantiles
    longer = np.arange(batch, dtype=float)  # how many of the drawn rows; all of them: nothing is left to ask
    beyond = (up_to[-1] - up_to)[:, None]
    log_share = (
        _log_choose(beyond, longer)
        + _log_choose(up_to[:, None], batch - longer)
        - _log_choose(up_to[-1], batch)
    )
    at_most = np.cumsum(np.exp(log_share), axis=1)  # of each length, for each number of longer rows
    result: Array = lengths @ np.diff(at_most, axis=0, prepend=0.0)
    return result


def _coarse(lengths: Array, rows: Array) -> tuple[Array, Array]:
    """At most a hundred lengths in place of neighbouring ones, with their mean."""
    if len(lengths) <= _MOST_LENGTHS:
        return lengths, rows
    starts = np.linspace(0, len(lengths), _MOST_LENGTHS, endpoint=False).astype(int)
    together = np.add.reduceat(rows, starts)
    return np.add.reduceat(lengths * rows, starts) / together, together


def _log_choose(n: Array | float, k: Array | float) -> Array:
    """The logarithm of n over k; of zero where k is larger."""
    from scipy.special import gammaln  # most processes never predict, and it takes a sixth of a second

    n, k = np.broadcast_arrays(n, k)
    left = np.maximum(n - k, 0)
    return np.where(k <= n, gammaln(n + 1) - gammaln(k + 1) - gammaln(left + 1), -np.inf)


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
