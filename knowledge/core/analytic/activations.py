"""Memory that the layers of a model keep between forward and backward pass.

Counted from what autograd saves (`benchmarks/knowledge/memory_terms.py`); Korthikanti et al. 2022 count
the same for one architecture and one precision.
"""

from __future__ import annotations

import numpy as np

from knowledge.core.analytic import litgpt
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.layer_kinds import KEPT

# Tensors of all chosen experts' tokens that a layer gives to NCCL and gets of it, forward and backward.
SENT = 8.0
# Families whose experts work one after the other, each on its tokens (transformers 4.45 to 4.55).
IN_TURN = frozenset({"mixtral", "olmoe", "qwen3_moe"})
# Families whose experts hand on the float32 that autocast makes of the norm before them.
WIDE_STREAM = frozenset({"phimoe"})
# Families whose router computes in float32 whatever its weights are (`modeling_deepseek_v3.py` and v2).
WIDE_ROUTER = frozenset({"deepseek_v2", "deepseek_v3"})
CAST_POWER = 6.0  # bytes of an input that autocast on GPUs keeps more where it computes powers in float32


def of_layer(c: ConfigTable) -> Array:
    """Return the bytes of a token that one layer keeps without checkpointing, (n,)."""
    kept = _kept(c)
    compute, attending = compute_bytes(c), attention_bytes(c)
    attention = np.where(c.eager, kept["eager_attention"], kept["attention"] + kept["outputs"])
    copied = np.where(c.repeated, 1.0, c.windowed)  # kernels share keys between heads without a mask alone
    attention += np.where(c.eager, 0.0, _of_repeats(c) * copied + c.tokens * c.windowed)
    attention -= np.where(c.lifted & ~c.eager, kept["views"], 0.0)  # cast, which frees what they lie in
    # Plain products keep queries, keys and values of all heads, and scores, in float32, but not their result.
    result = np.where(_copies(c) & c.adapter & ~c.lifted, 0.0, kept["result"])
    held = np.where(c.plain, 12.0 * c.queries + attending * result, attending * attention)
    found: Array = (
        _root_mean_squares(c, kept)
        + _norm_inputs(c, kept)
        + np.where(c.adapter, 0.0, _of_learnt_norms(c, kept))
        + _linear_inputs(c, kept)
        + held
        + compute * kept["mlp"]
        + np.where(c.cast_norms & (compute == 2), CAST_POWER * kept["cast_powers"], 0.0)
        + _of_experts(c, kept)
        + _of_dropout(c, kept)
        + kept["masks"]
        + np.where(c.eager & ~c.float32 & ~c.autocast, 2 * kept["wide_heads"], 0.0)
        + np.where(c.scoring, _scores(c, attending, kept), 4 * c.heads)
    )
    return litgpt.instead(c, found, litgpt.of_layer)


def of_boundary(c: ConfigTable) -> Array:
    """Return the bytes of a token that a checkpointed layer keeps: its input, (n,)."""
    found: Array = residual_bytes(c) * c.hidden
    return found


def widths_of_scores(c: ConfigTable) -> tuple[Array, Array]:
    """Bytes of an eager share, and of one that values are weighed with."""
    kept, narrow = _kept(c), attention_bytes(c)
    as_asked = kept["narrow_scores"] + np.where(c.autocast, 0.0, kept["uncast_scores"])
    narrow = np.where(c.plain, 4.0, narrow)
    return np.where(as_asked > 0, narrow, 4.0), narrow


def of_scores(c: ConfigTable) -> Array:
    """Bytes of a token's scores that eager attention holds besides the kept, (n,).

    Going back, softmax has what it gave and two gradients as wide.
    """
    wide, narrow = widths_of_scores(c)
    return np.where(c.scoring, (3 * wide - _kept_of_score(wide, narrow)) * c.heads * c.tokens, 0.0)


def _kept_of_score(wide: Array, narrow: Array) -> Array:
    """Bytes of a score that are kept, without drops and caps."""
    return np.where(wide == narrow, wide, wide + narrow)


def of_mlp_gradients(c: ConfigTable) -> Array:
    """Bytes of a token's gradients within the MLP of one layer, (n,)."""
    found: Array = compute_bytes(c) * c.mlp_matrices * c.mlp * _at_once(c)
    return found


def in_work(c: ConfigTable, layer: Array) -> Array:
    """Bytes that one layer holds in its backward pass besides what it keeps.

    First within the MLP; when that is done, eager attention has its scores.
    """
    kept = _kept(c)
    again = np.where(c.checkpointing, layer, 0.0)
    attending = np.maximum(0.0, again - _of_mlp(c, kept)) + of_scores(c)
    found: Array = np.maximum(again + of_mlp_gradients(c), attending) * c.peak_tokens
    return found


def in_forward(c: ConfigTable, layer: Array) -> Array:
    """Bytes that one layer holds while it goes forward, with nothing kept for later.

    Its most is within the MLP, when what attention worked with is gone, or in eager attention.
    """
    kept = _kept(c)
    later = (1 - _at_once(c)) * _of_experts(c, kept) + _of_dropout(c, kept)
    later += np.where(c.repeated_flash, attention_bytes(c) * _of_repeats(c), 0.0)
    again = layer - later - np.where(c.adapter, 0.0, _for_learning(c, kept))
    again = np.where(c.checkpointing, again, 0.0)
    wide, narrow = widths_of_scores(c)
    passing = (2 * wide + narrow - _kept_of_score(wide, narrow)) * c.heads * c.tokens
    attending = np.maximum(0.0, again - _of_mlp(c, kept)) + passing
    without = np.maximum(0.0, again - _scores(c, narrow, kept))
    return c.peak_tokens * np.where(c.scoring, np.maximum(without, attending), again)


def in_sending(c: ConfigTable, layer: Array) -> Array:
    """Bytes that a layer holds in work whose tokens go to other GPUs' experts.

    On the way back, one more of what is gathered and of what experts are wide comes to what is kept (backward
    pass of ScatterMoE's `ScatteredExperts`). Before PyTorch 2.8, tensors that NCCL gets or gives are not free
    until its stream is done (`record_stream`), when the next layer has its own. A GPU receives now more, now
    fewer tokens, so blocks of all that fit nothing else and lie beside those of logits.
    """
    kept = _kept(c)
    more = weight_bytes(c) * (kept["experts"] - kept["frozen_experts"])
    more += np.where(c.newer_pytorch, 0.0, SENT * compute_bytes(c) * kept["sent"])
    return np.where(_sends_tokens(c), (layer + more) * c.peak_tokens, 0.0)


def of_weight_copies(c: ConfigTable) -> Array:
    """Return the bytes of the 16-bit copies that autocast makes of weights that learn.

    It keeps them to the end of the forward pass, and autograd those of layers that are not computed again
    until the backward pass has come to them.
    """
    learnt = c.blocks + c.head
    found: Array = np.where(c.autocast & ~c.adapter & ~c.float32, 2.0 * learnt, 0.0)
    return found


def compute_bytes(c: ConfigTable) -> Array:
    """Bytes of a number that a linear layer gives, as wide as its input."""
    return np.where(c.float32 | c.lifted, 4.0, 2.0)


def attention_bytes(c: ConfigTable) -> Array:
    """Bytes of a number within attention, which no upcast reaches."""
    return np.where(c.float32, 4.0, 2.0)


def residual_bytes(c: ConfigTable) -> Array:
    """Bytes of a number of the residual stream, mostly those of a weight."""
    return np.where(c.autocast & c.family.among(WIDE_STREAM), 4.0, weight_bytes(c))


def weight_bytes(c: ConfigTable) -> Array:
    """Bytes of a number of an unquantised weight, or of a lifted stream."""
    return np.where(c.float32 | c.lifted | (c.autocast & ~c.adapter), 4.0, 2.0)


def _kept(c: ConfigTable) -> dict[str, Array]:
    return {name: c.kept[:, column] for column, name in enumerate(KEPT)}


def _of_mlp(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token that the MLP keeps, experts and the stream left out."""
    found: Array = compute_bytes(c) * kept["mlp"] + attention_bytes(c) * kept["product"]
    return found


def _of_experts(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token that its chosen experts keep; ScatterMoE's all of it."""
    frozen = c.adapter & (c.expert_parallel == 0)
    found: Array = weight_bytes(c) * np.where(frozen, kept["frozen_experts"], kept["experts"])
    return found


def _of_learnt_norms(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token from which the weights of norms learn."""
    narrow = residual_bytes(c) * kept["learnt"] + compute_bytes(c) * kept["learnt_heads"]
    found: Array = narrow + 4 * kept["learnt_float32"]
    return found


def _for_learning(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token that all weights learn from, and adapters alone do not."""
    inputs = kept["inputs"] - c.hidden + kept["product"]
    experts = (kept["experts"] - kept["frozen_experts"]) * _at_once(c)
    found: Array = _of_learnt_norms(c, kept) + compute_bytes(c) * inputs + weight_bytes(c) * experts
    return found


def _sends_tokens(c: ConfigTable) -> Mask:
    """Whether GPUs share experts, each with some of them (ScatterMoE)."""
    found: Mask = c.fsdp & (c.gpus > 1) & (c.expert_parallel > 1)
    return found


def _at_once(c: ConfigTable) -> Array:
    """The share of the chosen experts' work that a layer does at once.

    ScatterMoE, by which GPUs share experts, and our trainer's transformers do all of it.
    """
    in_turn = c.family.among(IN_TURN) & ~c.ours & (c.expert_parallel == 0)
    return np.where(in_turn, 1 / np.maximum(c.experts, 1.0), 1.0)


def _root_mean_squares(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token that norms by root mean squares keep: a copy in float32.

    Fused kernels keep the input as it is, which a checkpointed layer has of its first norm anyway.
    """
    inputs = kept["float32"] - np.where(c.checkpointing, c.hidden, 0.0)
    found: Array = np.where(c.fused, residual_bytes(c) * np.maximum(inputs, 0.0), 4 * kept["float32"])
    return found


def _of_dropout(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token that dropout before adapters keeps.

    For each, a mask of one byte and what is left. Without it, layers that read the stream share their input
    where nothing casts it.
    """
    own = kept["copies"] + kept["result"] + kept["product"]
    shared = np.where(c.autocast & ~c.float32 & (~c.quantized | c.lifted), own, kept["inputs"])
    found: Array = np.where(c.dropout, own + attention_bytes(c) * np.maximum(own - shared, 0.0), 0.0)
    return found


def _of_repeats(c: ConfigTable) -> Array:
    """Elements by which a token's keys and values of all heads exceed shared ones.

    Of one key for all heads none: transformers' copies (`repeat_kv`) are views, unless a cast copies them.
    """
    views = (c.keys * c.heads == c.queries) & ~c.lifted
    found: Array = np.where(views, 0.0, 2 * (c.queries - c.keys))
    return found


def _norm_inputs(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token that norms keep of the stream, root mean squares left out.

    Cast to float32, each is a copy of its own, unless the stream is that already. Queries and keys that are
    not cast keep the tensor that has values, too (half as much again), which fused attention has anyway.
    """
    residual = residual_bytes(c)
    found: Array = np.where(
        c.cast_norms & (residual == 2), 4 * kept["cast_norms"], residual * kept["residual"]
    )
    whole = np.where(c.eager, 1.5 * attention_bytes(c), 0.0)
    found += np.where(c.cast_norms, 4.0, whole) * kept["cast_heads"]
    return found


def _linear_inputs(c: ConfigTable, kept: dict[str, Array]) -> Array:
    """Bytes of a token that linear layers and adapters keep of their inputs.

    Adapters in float32 beside a computation in less keep a copy of their own, one for each layer that reads
    the stream, since autocast makes a new one each time. Quantised layers hand their input over as it is,
    unless the stream is lifted.
    """
    compute = attention_bytes(c)
    copies = _copies(c)
    inputs = compute * np.where(copies, kept["copies"], kept["inputs"])
    inputs += np.where(c.adapter, c.lora_r * c.adapters * compute, compute * kept["router"])
    inputs += np.where(copies & ~c.adapter, compute * kept["router_copies"], 0.0)
    cast = c.family.among(WIDE_ROUTER) & ~c.adapter & (weight_bytes(c) == 2)
    inputs += np.where(cast, 4.0 * c.hidden, 0.0)
    copied = np.where(c.eager, 0.0, kept["result"] - kept["outputs"]) + kept["relu"]
    inputs += np.where(copies & c.adapter & ~c.lifted, compute * copied, 0.0)
    inputs += np.where(c.lifted, compute * kept["relu"], 0.0)
    found: Array = inputs + compute * kept["product"]
    return found


def _copies(c: ConfigTable) -> Mask:
    """Whether each layer that reads the stream keeps a copy of its own."""
    found: Mask = c.autocast & ~c.float32 & (~c.quantized | c.lifted)
    return found


def _scores(c: ConfigTable, compute: Array, kept: dict[str, Array]) -> Array:
    """Bytes of a token's scores.

    They are probabilities in float32, and a copy of them where the computation has less. Where some are
    dropped, a mask of bytes, and what is left, unless it takes the copy's place.
    """
    each = np.where(c.float32, 4.0, 4.0 + compute) * c.heads + compute * kept["capped"]
    each -= np.where(weight_bytes(c) == 2, 4.0, 0.0) * kept["narrow_scores"]
    each -= np.where(c.float32 | c.autocast, 0.0, 4.0) * kept["uncast_scores"]
    copied = ~c.float32 & (c.autocast | (kept["uncast_scores"] == 0))
    each += (1.0 + np.where(copied, 0.0, compute)) * kept["score_masks"]
    found: Array = np.where(c.plain, 4.0 * c.heads, each) * c.tokens
    return found
