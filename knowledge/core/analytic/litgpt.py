"""The memory of LitGPT on one GPU.

Tensors are counted as its source and Lightning's make and free them. Lightning hands logits on in float32,
beside which the former micro-step's still lie, since the loop keeps their name until it has new ones. They
keep the former graph alive, and with it the inputs of 4-bit layers, which bitsandbytes before 0.43.2 holds
outside of what autograd frees. The head is a layer in 4 bits like others; its weights are made whole again in
16 bits twice, once as they were quantised and once as they are needed. Embeddings and head are never one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.litgpt_layers import LitgptLayer
from knowledge.core.domain.arrays import Array

IN_4_BITS = 0.5625  # of a weight with its scales, which `bnb.nf4` leaves in float32, one for 64 weights
CHUNK = 128  # positions whose logits adapters are trained with at a time
CAPPED_SCORE = 8.0  # bytes of a score: before and after the softmax, and in 16 bits
HEAD_COPIES = 4.0  # of a weight of the head while it is made whole
# Bytes of a logit: former and new ones in float32 and the new ones in 16 bits; with all weights learning,
# new ones, a copy without the last position and their logarithms in float32.
LOGIT, FULL_LOGIT, HEAD_FORWARD, HEAD_BACKWARD = 10.0, 12.0, 4.0, 6.0
PAGED_ADAPTER = 4.0  # of an adapter's weight and gradient; its states are paged, so none of what must fit
LOSS = 8.0  # bytes of a logit and its logarithm, and of two gradients of a chunk's logits


def instead(c: ConfigTable, usual: Array, count: Callable[[ConfigTable], Array]) -> Array:
    """Return `usual`, but LitGPT's rows as `count` says; most tables have none."""
    return np.where(c.litgpt, count(c), usual) if c.litgpt.any() else usual


def of_layer(c: ConfigTable) -> Array:
    """Return the bytes of a token that one layer keeps without checkpointing, (n,)."""
    layer = _layer(c)
    learning = np.where(c.adapter, layer.dropped + c.lora_r * layer.ranks, layer.full)
    held = np.where(c.kept_inputs, layer.inputs, 0.0)
    scores = c.heads * np.where(c.eager, CAPPED_SCORE * c.tokens, 4.0)
    found: Array = layer.kept + learning + held + scores
    return found


def of_former(c: ConfigTable) -> Array:
    """Return the bytes of the former micro-step's inputs at the peak, (n,)."""
    found: Array = np.minimum(_former(c), np.maximum(0.0, _forward(c) - _backward(c)))
    return found


def of_logits(c: ConfigTable) -> Array:
    """Return the bytes of logits and of the head's weights made whole, (n,)."""
    found: Array = np.maximum(_forward(c), _backward(c)) - of_former(c)
    return found


def of_adapter(c: ConfigTable) -> Array:
    """Return the bytes of a weight of an adapter, (n,): its gradient and states, too."""
    return np.where(c.paged, PAGED_ADAPTER, np.where(c.silent, 16.0, c.state_bytes))


def of_frozen(c: ConfigTable) -> Array:
    """Return the bytes of a model in 4 bits, (n,): all but embeddings and norms."""
    left = c.parameters - c.blocks - c.head
    found: Array = IN_4_BITS * (c.blocks + c.head) + 2.0 * left
    return found


def _forward(c: ConfigTable) -> Array:
    """Bytes at the end of a forward pass, with what is left of the one before."""
    head = HEAD_FORWARD * c.vocab * c.peak_tokens + 2.0 * c.vocab * (c.peak_tokens - _chunk(c))
    whole = np.where(c.adapter, LOGIT, FULL_LOGIT) * c.vocab * c.peak_tokens
    quantised = np.where(c.quantized, head + HEAD_COPIES * c.head, 0.0)
    found: Array = np.maximum(whole, quantised) + _former(c)
    return found


def _backward(c: ConfigTable) -> Array:
    """Bytes at the start of a backward pass, when the former one is gone."""
    loss = LOSS * c.vocab * (c.peak_tokens + np.where(c.adapter, _chunk(c), 0.0))
    head = HEAD_BACKWARD * c.vocab * c.peak_tokens + HEAD_COPIES * c.head
    found: Array = np.maximum(loss, np.where(c.quantized, head, 0.0))
    return found


def _former(c: ConfigTable) -> Array:
    held = c.kept_inputs & ~c.checkpointing
    found: Array = np.where(held, _layer(c).inputs * c.layers * c.peak_tokens, 0.0)
    return found


def _layer(c: ConfigTable) -> LitgptLayer:
    """The columns of a layer."""
    return LitgptLayer(*c.litgpt_layer.T)


def _chunk(c: ConfigTable) -> Array:
    """Tokens of the last positions whose logits are made together."""
    found: Array = np.minimum(CHUNK, c.tokens) * c.batch
    return found
