"""The linear layers that LoRA adapts, computed from a model's sizes.

They are those of `trainer.train.base.adapters.targets`.
"""

from __future__ import annotations

from knowledge.core.domain.catalogue import Model

# Architectures that make queries, keys and values by one layer, and gate and MLP: fewer adapters.
ONE_QUERY_LAYER = ("bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "mpt", "phi3")
ONE_GATE_LAYER = ("glm", "glm4", "granite4-dense", "granitemoehybrid", "granitemoeshared", "phi3")


def ends(model: Model) -> float:
    """Return the number of inputs and outputs of all adapted layers.

    Times the rank, it is the number of an adapter's weights.
    """
    mixers = (model.layers - model.attention_layers) * 8 * model.hidden
    return model.attention_layers * _of_attention(model) + mixers + model.layers * _of_mlp(model)


def _of_attention(model: Model) -> float:
    hidden, queries, keys = model.hidden, model.heads * model.head_dim, model.kv_heads * model.head_dim
    inputs = 1 if model.architecture in ONE_QUERY_LAYER else 3
    return inputs * hidden + queries + 2 * keys + (queries + hidden)


def _of_mlp(model: Model) -> float:
    """Return the inputs and outputs of the MLP layers that every token passes through.

    In a mixture of experts these are the shared experts.
    """
    width = model.shared_mlp_width if model.experts else model.mlp_width
    if not width:
        return 0.0
    inputs = 2 if model.mlp_gated and model.architecture not in ONE_GATE_LAYER else 1
    return inputs * model.hidden + (2 if model.mlp_gated else 1) * width + (width + model.hidden)
