"""Models that the catalogue lacks, by their own description."""

from __future__ import annotations

import json
from typing import Any

from knowledge.core.domain.catalogue import Model, UnknownModel
from trainer.architectures import POSITIONS, number_of_experts, positions

# Other names of the same sizes, as GPT-2, GPT-Neo, BLOOM, OPT and Falcon have them.
_ALIASES = {
    "hidden_size": ("n_embd", "n_embed", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size"),
    "num_key_value_heads": ("num_kv_heads",),
    POSITIONS[0]: POSITIONS[1:],
}
# The MLP's width where none is stated.
_FOUR_TIMES = ("bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gptj", "mpt")
_ONE_KEY = ("falcon", "gpt_bigcode")  # keys and values of one head, unless it says otherwise
# Families whose embeddings are the head, unless a file says otherwise: it states what is unusual alone.
_TIED = (
    "bloom", "cohere", "cohere2", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n_text",
    "gpt2", "gpt_bigcode", "gpt_neo", "mpt", "opt", "smollm3", "starcoder2",
)  # fmt: skip
_FULL_EVERY = {"cohere2": 4, "gemma2": 2, "gemma3": 6, "gemma3_text": 6}  # one layer in so many has no window
_PLAIN = (  # architectures whose MLP has no gate
    "bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt", "nemotron",
    "opt", "persimmon", "phi", "starcoder2",
)  # fmt: skip


def model_from_config(text: str, name: str) -> Model:
    """A model described by the text of its Hugging Face config.json.

    Raises UnknownModel when the file lacks a size that a prediction needs. Parameters are counted from
    the matrices (biases and norms left out, below 0.1 %).
    """
    try:
        raw: dict[str, Any] = json.loads(text)
        raw = with_usual_names(raw)
        hidden, layers, heads = raw["hidden_size"], raw["num_hidden_layers"], raw["num_attention_heads"]
        width, vocab = raw["intermediate_size"], raw["vocab_size"]
        if None in (hidden, layers, heads, width, vocab):
            raise UnknownModel(name)
    except (ValueError, KeyError, AttributeError, TypeError) as missing:
        raise UnknownModel(name) from missing
    experts = number_of_experts(raw)
    shape: dict[str, Any] = {
        "model_name": name,
        "architecture": raw.get("model_type", "unknown"),
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": raw.get("num_key_value_heads") or heads,
        "head_dim": _head_dim(raw),
        "mlp_width": raw.get("moe_intermediate_size" if experts else "shared_intermediate_size") or width,
        "mlp_gated": raw.get("model_type") not in _PLAIN,
        "vocab": vocab,
        "max_context": positions(raw),
        "tied_embeddings": bool(raw.get("tie_word_embeddings", raw.get("model_type") in _TIED)),
        "attention_layers": layers,
        "experts": experts,
        "experts_per_token": raw.get("num_experts_per_tok") or 0,
        "shared_mlp_width": _shared_width(raw) if experts else 0,
        **_windows(raw),
        **_compressed(raw),
    }
    first = min(layers, raw.get("first_k_dense_replace") or 0) if experts else 0
    shape |= {"dense_layers": first, "dense_mlp_width": width} if first else {}
    active = Model(parameters=1, active_parameters=1, **shape)
    embedding = 0 if active.tied_embeddings else vocab * hidden
    matrices = 3 if active.mlp_gated else 2
    idle = layers * matrices * hidden * active.mlp_width * max(0, experts - active.experts_per_token)
    counted = int(active.matmul_parameters) + embedding + _of_compressed_keys(active)
    counted += first * matrices * hidden * (width - active.active_mlp_width)
    idle -= idle // layers * first
    return Model(parameters=counted + (idle if experts else 0), active_parameters=counted, **shape)


def with_usual_names(whole: dict[str, Any]) -> dict[str, Any]:
    """Return what a config.json says of its text part, sizes under their usual names.

    Sizes that are not stated have the values that the family has then, as far as they are known.
    """
    raw: dict[str, Any] = whole.get("text_config", whole)
    found = {name: value for name, value in whole.items() if name == "tie_word_embeddings"} | raw
    for usual, others in _ALIASES.items():
        stated = [raw[name] for name in (usual, *others) if raw.get(name) is not None]
        if stated:
            found[usual] = stated[0]
    unstated = found.get("intermediate_size") is None and isinstance(found.get("hidden_size"), int)
    if unstated and raw.get("model_type") in _FOUR_TIMES:
        found["intermediate_size"] = 4 * found["hidden_size"]
    if raw.get("multi_query", raw.get("model_type") in _ONE_KEY) and not raw.get("new_decoder_architecture"):
        found["num_key_value_heads"] = 1
    return found


def _windows(raw: dict[str, Any]) -> dict[str, int]:
    """Return the window of attention, and how many layers have it.

    Qwen's have none unless the file says so.
    """
    family, layers = str(raw.get("model_type")), raw["num_hidden_layers"]
    window = raw.get("sliding_window") or 0
    if not window or not raw.get("use_sliding_window", not family.startswith("qwen")):
        return {}
    kinds = raw.get("layer_types")
    if isinstance(kinds, list):
        return {"window": window, "windowed_layers": kinds.count("sliding_attention")}
    every = raw.get("sliding_window_pattern") or _FULL_EVERY.get(family) or layers + 1
    return {"window": window, "windowed_layers": layers - layers // every}


def _head_dim(raw: dict[str, Any]) -> int:
    """The width of a head's queries and keys, which DeepSeek states in two parts."""
    parts = (raw.get("qk_nope_head_dim") or 0) + (raw.get("qk_rope_head_dim") or 0)
    stated = parts if raw.get("kv_lora_rank") else raw.get("head_dim")
    return int(stated or raw["hidden_size"] // raw["num_attention_heads"])


def _compressed(raw: dict[str, Any]) -> dict[str, int]:
    """The sizes of DeepSeek's attention, which makes keys and values from few numbers."""
    names = {
        "query_rank": "q_lora_rank",
        "key_rank": "kv_lora_rank",
        "turned_width": "qk_rope_head_dim",
        "value_width": "v_head_dim",
    }
    if not raw.get("kv_lora_rank"):
        return {}
    return {name: raw.get(stated) or 0 for name, stated in names.items()}


def _of_compressed_keys(model: Model) -> int:
    """Return the weights of compressed attention beyond the usual ones."""
    if not model.key_rank:
        return 0
    queries, values = model.heads * model.head_dim, model.heads * model.value_width
    asked = model.query_rank * (model.hidden + queries) if model.query_rank else model.hidden * queries
    made = queries - model.heads * model.turned_width + values
    kept = model.hidden * (model.key_rank + model.turned_width) + model.key_rank * made
    kept += values * model.hidden
    return model.layers * (asked + kept - 4 * model.hidden * queries)


def _shared_width(raw: dict[str, Any]) -> int:
    """The width of the experts that every token passes through, as configs state it."""
    stated = raw.get("shared_intermediate_size") or raw.get("shared_expert_intermediate_size")
    return int(stated or (raw.get("n_shared_experts") or 0) * (raw.get("moe_intermediate_size") or 0))
