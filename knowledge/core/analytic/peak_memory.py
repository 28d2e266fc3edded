"""Peak memory in parts whose weights are fitted to measured peaks.

The prior counts what must be there; frameworks hold more: whole layers and embeddings put together from
shards, blocks that the allocator keeps, buffers of the network. How much of each is learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from knowledge.core.analytic import cost_model, gathered
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.least_squares import fit_weights, masked, shares
from knowledge.core.domain.arrays import Array

# The holder of each of `peak_parts`, in their order: several are one thing with a weight for each way to run.
STATES, GATHERED = "states", "gathered shards"
HOLDERS = (
    *4 * (STATES,),
    *3 * ("activations",),
    *2 * ("logits",),
    *4 * (GATHERED,),
    "adapters",
    *2 * ("cached",),
    "context",
    "communicators",
    GATHERED,
    "copies",
)
ROBUST = 0.15  # errors of ln(bytes) beyond this count linearly
# Of ln(weight), stated: sources lie 0.08 to 0.30 apart in a term (`benchmarks/knowledge/peak_effects.py`).
SPREAD = 0.3


def peak_parts(c: ConfigTable) -> Array:
    """Bytes of one GPU at the peak, in parts at their stated weights. Shape (n, k)."""
    stated = cost_model.memory(c)
    states = stated.weights + stated.gradients + stated.optimizer
    full, sharded = ~c.adapter, c.fsdp
    root = gathered.of_root(c)
    parts = [
        *masked(sharded, np.where(full, states, 0.0)),
        *masked(sharded, np.where(full, 0.0, states)),
        *masked(sharded, np.where(c.checkpointing, stated.activations, 0.0)),
        np.where(c.checkpointing, 0.0, stated.activations),
        *masked(c.fused, stated.logits),
        *masked(full, root),
        *masked(full, gathered.of_layers(c) + gathered.of_pending(c)),
        stated.adapters,
        *masked(c.fused, stated.cached),
        stated.context,
        stated.communicators,
        gathered.of_whole_gradients(c),
        stated.copies,
    ]
    return np.column_stack(parts)


def shown(c: ConfigTable, peak: Array) -> Array:
    """Peaks as measurements show them, (n,): no GPU uses more than it has."""
    return np.minimum(with_paged(c, peak), c.memory)


def with_paged(c: ConfigTable, peak: Array) -> Array:
    """Peaks with all paged states that the whole GPU has room for, (n,).

    The prior has some leave, so that the rest fits for sure; a run lets them stay as long as it can.
    """
    return np.where(c.paged, np.minimum(peak + _paged_out(c), np.maximum(peak, c.memory)), peak)


def _paged_out(c: ConfigTable) -> Array:
    """Bytes of paged states that the prior has leave, (n,)."""
    if not c.paged.any():
        return np.zeros(len(c))
    all_stay = cost_model.memory(replace(c, paged=np.zeros(len(c), dtype=bool)))
    found: Array = all_stay.optimizer - cost_model.memory(c).optimizer
    return found


class PeakMemory:
    """Weights of the parts of a peak. After `fit`: `weights_`, shape (k,)."""

    def fit(self, c: ConfigTable, peak: Array, groups: Sequence[str]) -> PeakMemory:
        """Fit the weights to measured peaks.

        peak: measured bytes, shape (n,).
        groups: repeats of one count together as one row.
        """
        parts = peak_parts(c)
        self.weights_: Array = fit_weights(
            lambda weights: shown(c, parts @ weights),
            parts.shape[1],
            peak,
            groups,
            ROBUST,
            SPREAD,
        )
        return self

    def value(self, c: ConfigTable) -> Array:
        """Bytes of one GPU, shape (n,); more than it has where it would not fit."""
        found: Array = peak_parts(c) @ self.weights_
        return found

    def held(self, c: ConfigTable) -> dict[str, Array]:
        """Return the bytes of one GPU by what holds them, each of shape (n,).

        Together they are `value`. The states of the model have one weight; they are divided as the
        prior counts them.
        """
        found = dict.fromkeys(HOLDERS, np.zeros(len(c)))
        for name, amounts in zip(HOLDERS, (peak_parts(c) * self.weights_).T, strict=True):
            found[name] = found[name] + amounts
        stated, states = cost_model.memory(c), found.pop(STATES)
        names = ("weights", "gradients", "optimizer")
        factor = states / sum(getattr(stated, name) for name in names)
        return {name: getattr(stated, name) * factor for name in names} | found

    def observed(self, c: ConfigTable) -> Array:
        """The peak as a measurement shows it."""
        return shown(c, self.value(c))

    def features(self, c: ConfigTable) -> Array:
        """Return features for an estimator.

        They are the share of the GPU (in logarithms) and the share of each part in the peak.
        """
        value = self.value(c)
        return np.column_stack([np.log(value / c.memory), shares(peak_parts(c), self.weights_, value)])
