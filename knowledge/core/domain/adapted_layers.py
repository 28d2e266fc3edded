"""The linear layers that LoRA adapts, computed from a model's sizes.

All linear layers are those of `trainer.train.base.adapters.targets`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from knowledge.core.domain.catalogue import Model
from trainer import recipes

# Architectures that make queries, keys and values by one layer, and gate and MLP: fewer adapters.
ONE_QUERY_LAYER = (
    *("bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "mpt", "persimmon", "phi3"),
)
ONE_GATE_LAYER = ("glm", "glm4", "granite4-dense", "granitemoehybrid", "granitemoeshared", "phi3")

ALL_LINEAR, ATTENTION = recipes.ALL_LINEAR, recipes.ATTENTION
QUERY_VALUE = "query-value"  # attention's, but for keys and results
PLACEMENTS = (ALL_LINEAR, ATTENTION, QUERY_VALUE)
UNSTATED = ATTENTION  # between the other two, which are as usual
_MLP = {"gate_proj", "up_proj", "down_proj", "gate_up_proj", "fc1", "fc2", "c_fc", "w1", "w2", "w3", "mlp"}
_MLP |= {"dense_h_to_4h", "dense_4h_to_h", "fc_in", "fc_out", "linear_fc1", "linear_fc2"}
_OF_ATTENTION = {"k_proj", "o_proj", "out_proj", "dense", "c_proj", "qkv_proj", "query_key_value", "c_attn"}
_OF_ATTENTION |= {"q_proj", "v_proj", "wqkv", "k", "o"}
_QUERY_VALUE = {"q_proj", "v_proj", "q", "v", "query_key_value", "qkv_proj", "c_attn", "wqkv"}


@lru_cache(maxsize=1000)
def placement(text: str) -> str | None:
    """Return what a list of modules comes down to, None if unknown.

    text: one of PLACEMENTS, or names as peft takes them, in any punctuation.
    """
    plain = text.strip().lower().replace("_", "-")
    if plain in PLACEMENTS:
        return plain
    names = set(re.findall(r"[a-z_0-9]+", text.lower()))
    if names & _MLP:
        return ALL_LINEAR
    if names and names <= _QUERY_VALUE:
        return QUERY_VALUE
    return ATTENTION if names & _OF_ATTENTION else None


def ends(model: Model, placed: str = ALL_LINEAR) -> float:
    """Return the number of inputs and outputs of all adapted layers.

    Times the rank, it is the number of an adapter's weights.
    """
    if placed == QUERY_VALUE:
        return model.attention_layers * _of_queries_and_values(model)
    attention = model.attention_layers * _of_attention(model)
    if placed == ATTENTION:
        return attention
    mixers = (model.layers - model.attention_layers) * 8 * model.hidden
    shared = (model.layers - model.dense_layers) * _of_mlp(model, _shared_width(model))
    return attention + mixers + shared + model.dense_layers * _of_mlp(model, model.dense_mlp_width)


def readers(model: Model, placed: str = ALL_LINEAR) -> int:
    """Return how many adapted layers of a layer read the residual stream."""
    one = model.architecture in ONE_QUERY_LAYER
    of_attention = 1 if one else (2 if placed == QUERY_VALUE or model.key_rank else 3)
    if placed != ALL_LINEAR or (model.experts and not model.shared_mlp_width):
        return of_attention
    return of_attention + (2 if model.mlp_gated and model.architecture not in ONE_GATE_LAYER else 1)


def _of_queries_and_values(model: Model) -> float:
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    if model.architecture in ONE_QUERY_LAYER:
        return model.hidden + queries + 2 * keys
    return 2 * model.hidden + queries + keys


def _of_attention(model: Model) -> float:
    if model.key_rank:
        return _of_compressed_attention(model)
    hidden, queries, keys = model.hidden, model.heads * model.head_dim, model.kv_heads * model.head_dim
    inputs = 1 if model.architecture in ONE_QUERY_LAYER else 3
    return inputs * hidden + queries + 2 * keys + (queries + hidden)


def _of_compressed_attention(model: Model) -> float:
    """Return the inputs and outputs of attention with compressed keys."""
    queries, values = model.heads * model.head_dim, model.heads * model.value_width
    asked = model.hidden + queries + 2 * model.query_rank
    few, made = model.key_rank, queries - model.heads * model.turned_width + values
    return asked + (model.hidden + few + model.turned_width) + (few + made) + (values + model.hidden)


def _shared_width(model: Model) -> float:
    """The width of the MLP, or of shared experts, that every token passes."""
    return model.shared_mlp_width if model.experts else model.mlp_width


def _of_mlp(model: Model, width: float) -> float:
    if not width:
        return 0.0
    inputs = 2 if model.mlp_gated and model.architecture not in ONE_GATE_LAYER else 1
    return inputs * model.hidden + (2 if model.mlp_gated else 1) * width + (width + model.hidden)
