"""Memory of logits, and blocks that they share with attention's scores."""

from __future__ import annotations

import numpy as np

from knowledge.core.analytic import activations, litgpt
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array, Mask
from trainer.logits import BYTES_PER_LOGIT, positions_at_once

# Families that hand out logits in float32 (transformers 4.50 to 4.55, `modeling_granitemoe.py` and kin).
WIDE_LOGITS = frozenset({"granitemoe", "granitemoeshared", "granitemoehybrid", "granite4-dense"})
# Families that scale logits before the loss (transformers, `modeling_granite.py`, `modeling_cohere.py`, and
# `modeling_gemma2.py`, whose tanh of them is kept besides).
SCALED_LOGITS = WIDE_LOGITS | {"granite", "cohere", "cohere2", "gemma2"}
# Of those in float32, the one whose loss fms-acceleration's fused kernels leave as it is.
UNFUSED_LOSS = frozenset({"granitemoe"})
OVERWRITTEN = 4.0  # bytes of a logit that their loss does without (its `Fast_CrossEntropyLoss`)
SEGMENT = 2 * 2**20  # bytes that the allocator rounds large segments up to
FLOAT32 = 4.0
FRAGMENTS = 0.11  # of what checkpointing keeps: 0.05 to 0.15 in plays (`benchmarks/trainer/whole_steps.py`)


def of_logits(c: ConfigTable) -> Array:
    """Return the bytes of logarithms of probabilities and two gradients in float32.

    Where the head gives 16 bits, and all positions at once, its logits have a block of their own, and scaled
    ones another: none of what follows fits into them, and the allocator keeps them for the gradients of the
    same width. Autocast copies an upcast head, besides.
    """
    blocks = 2.0 * np.where(c.chunked | c.float32 | c.cpu, 0.0, np.where(_scales_logits(c), 2.0, 1.0))
    blocks = blocks - np.where(_overwrites_logits(c), OVERWRITTEN, 0.0)
    kept: Array = (BYTES_PER_LOGIT + blocks) * c.vocab * _positions(c)
    kept += np.where(c.upcast, 2.0 * c.head, 0.0)
    return litgpt.instead(c, kept + _of_shifted_copy(c), litgpt.of_logits)


def _of_shifted_copy(c: ConfigTable) -> Array:
    """Return the bytes to which a shifted copy of float32 logits leads, (n,).

    The copy lacks a position of each sample. Where its segment, rounded up, is too small for all logits, one
    of the gradients that would have come in its place needs another block.
    """
    copied = c.counting & c.family.among(WIDE_LOGITS) & (~c.fused | c.family.among(UNFUSED_LOSS))
    whole, shifted = (4.0 * c.vocab * positions for positions in (c.peak_tokens, c.peak_tokens - c.batch))
    return np.where(copied & (np.ceil(shifted / SEGMENT) * SEGMENT < whole), whole, 0.0)


def blocks_left(c: ConfigTable, layer: Array, again: Array, logits: Array) -> Array:
    """Return the bytes of free blocks at the peak, (n,).

    layer, again: what a layer holds going forward, and in the backward pass. Blocks of the smaller one stay,
    as they fit nothing else. Those of eager attention's scores are as large as logits', so where layers are
    computed again, logits come into them; but three are needed in the backward pass, of two.
    """
    wide, _ = activations.widths_of_scores(c)
    third = wide * c.heads * c.tokens * c.peak_tokens
    third = np.where(third > FLOAT32 * c.vocab * _positions(c), third, 0.0)
    eager = layer + logits - _in_blocks_of_scores(c) + third - np.maximum(again, logits)
    return np.where(c.scoring & c.checkpointing, np.maximum(0.0, eager), np.minimum(layer, logits))


def of_fragments(c: ConfigTable, kept: Array) -> Array:
    """Return the bytes that stay free at least between what checkpointing keeps.

    Segments of our trainer's allocator grow, and LitGPT tells bytes allocated.
    """
    return np.where(c.checkpointing & ~c.ours & ~c.litgpt, FRAGMENTS * kept, 0.0)


def _in_blocks_of_scores(c: ConfigTable) -> Array:
    """Bytes of logits that find room in free blocks of scores, (n,).

    The allocator gives each tensor the smallest free block that is large enough, and splits it.
    """
    wide, narrow = activations.widths_of_scores(c)
    free = np.stack([wide, wide, narrow]) * c.heads * c.tokens * c.peak_tokens
    found, rows = np.zeros(len(c)), np.arange(len(c))
    for size in _blocks(c):
        fitting = np.where((free >= size) & (size > 0), free, np.inf)
        place = fitting.argmin(axis=0)
        room = np.isfinite(fitting[place, rows])
        free[place, rows] -= np.where(room, size, 0.0)
        found += np.where(room, size, 0.0)
    return found


def _blocks(c: ConfigTable) -> list[Array]:
    """Blocks of logits in the order in which they come."""
    whole = c.vocab * _positions(c)
    head, narrow = np.where(c.upcast, 2.0 * c.head, 0.0), np.where(c.chunked | c.float32, 0.0, 2.0 * whole)
    return [head, narrow, *3 * [FLOAT32 * whole]]


def _positions(c: ConfigTable) -> Array:
    """Positions of which there are logits at once."""
    few = np.minimum(c.peak_tokens, positions_at_once(c.vocab))
    return np.where(c.chunked, few, c.peak_tokens)


def _overwrites_logits(c: ConfigTable) -> Mask:
    """Whether the loss of fused kernels gives gradients in place of its logits.

    It shifts them by a position, which copies those of several samples, and leaves the blocks as many.
    """
    found: Mask = c.fused & ~c.chunked & ~c.float32 & ~c.family.among(UNFUSED_LOSS) & (c.batch == 1)
    return found


def _scales_logits(c: ConfigTable) -> Mask:
    """Whether logits are divided or multiplied by a number, which gives new ones."""
    return c.family.among(SCALED_LOGITS)
