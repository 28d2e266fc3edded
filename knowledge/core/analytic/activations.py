"""What the layers of a model keep in memory between forward and backward pass.

Counted from what autograd saves (`benchmarks/knowledge/memory_terms.py`); Korthikanti et al. 2022 count
the same for one architecture and one precision.
"""

from __future__ import annotations

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.layer_kinds import KEPT

ADAPTED_LAYERS = 7  # linear layers of a usual layer that have an adapter


def of_layer(c: ConfigTable) -> Array:
    """Return the bytes of a token that one layer keeps without checkpointing, (n,)."""
    kept = {name: c.kept[:, column] for column, name in enumerate(KEPT)}
    compute, residual = compute_bytes(c), residual_bytes(c)
    copies = c.autocast & ~c.float32
    learnt = residual * kept["learnt"] + compute * kept["learnt_heads"] + 4 * kept["learnt_float32"]
    inputs = compute * np.where(copies, kept["copies"], kept["inputs"])
    inputs += np.where(c.adapter, 0.0, compute * kept["router"])
    adapters = np.where(c.adapter, c.lora_r * ADAPTED_LAYERS, 0.0)
    adapters += np.where(
        copies & c.adapter, c.queries - np.where(c.eager, 0.0, kept["outputs"]) + kept["relu"], 0.0
    )
    attention = np.where(c.eager, kept["eager_attention"], kept["attention"] + kept["outputs"])
    found: Array = (
        4 * kept["float32"]
        + residual * kept["residual"]
        + np.where(c.adapter, 0.0, learnt)
        + inputs
        + compute * (attention + kept["mlp"] + adapters)
        + residual * np.where(c.adapter, kept["frozen_experts"], kept["experts"])
        + np.where(c.eager, _scores(c, compute, kept["capped"]), 4 * c.heads)
    )
    return found


def of_boundary(c: ConfigTable) -> Array:
    """Return the bytes of a token that a checkpointed layer keeps: its input, (n,)."""
    found: Array = residual_bytes(c) * c.hidden
    return found


def compute_bytes(c: ConfigTable) -> Array:
    """Bytes of a number that a layer computes with."""
    return np.where(c.float32, 4.0, 2.0)


def residual_bytes(c: ConfigTable) -> Array:
    """Bytes of a number of the residual stream, as wide as the stored weights."""
    return np.where(c.float32 | (c.autocast & ~c.adapter), 4.0, 2.0)


def _scores(c: ConfigTable, compute: Array, capped: Array) -> Array:
    """Bytes of a token's scores.

    They are probabilities in float32, and a copy of them where the computation has less.
    """
    each = np.where(c.float32, 4.0, 4.0 + compute) * c.heads + compute * capped
    found: Array = each * c.tokens
    return found
