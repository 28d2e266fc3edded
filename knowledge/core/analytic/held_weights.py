"""The bytes of a model's weights."""

from __future__ import annotations

import numpy as np

from knowledge.core.analytic import activations, litgpt
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.gathered import QUANTIZED_BYTES
from knowledge.core.domain.arrays import Array


def of_model(c: ConfigTable) -> Array:
    """Return the bytes of all weights, frozen or learning, without towers, (n,)."""
    width = _frozen_width(c)
    in_4_bits = QUANTIZED_BYTES * c.blocks + width * (c.parameters - c.blocks)
    quantized = litgpt.instead(c, in_4_bits, litgpt.of_frozen)
    frozen = np.where(c.quantized, quantized, width * c.parameters)
    return np.where(c.adapter, frozen, stored_bytes(c) * c.parameters)


def of_scales(c: ConfigTable) -> Array:
    """Return the bytes of scales of 4-bit weights beyond a GPU's share of them, (n,).

    bitsandbytes keeps them beside the parameters, which FSDP shards alone.
    """
    whole = (QUANTIZED_BYTES - 0.5) * c.blocks * (1 - 1 / c.shards)
    return np.where(c.whole_scales, whole, 0.0)


def stored_bytes(c: ConfigTable) -> Array:
    """Return the bytes of a weight that learns, as it is stored, (n,)."""
    return np.where(c.fsdp, np.where(c.state_bytes == 16, 4.0, 2.0), activations.weight_bytes(c))


def of_towers(c: ConfigTable) -> Array:
    """Return the bytes of weights that text does not reach, (n,)."""
    found: Array = c.towers * np.where(
        c.adapter, np.where(c.quantized, QUANTIZED_BYTES, _frozen_width(c)), 4.0
    )
    return found


def trained_parameters(c: ConfigTable) -> Array:
    """Parameters that get gradients."""
    return np.where(c.adapter, c.lora_parameters, c.parameters)


def checkpoint_bytes(c: ConfigTable) -> Array:
    """Bytes of a checkpoint, shape (n,).

    It holds the trained weights and AdamW's two moments, all in float32.
    """
    found: Array = 12.0 * trained_parameters(c)
    return found


def _frozen_width(c: ConfigTable) -> Array:
    return np.where(c.float32 | c.upcast, 4.0, 2.0)
