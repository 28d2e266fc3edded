"""Models that the catalogue lacks, by their own description."""

from __future__ import annotations

import json
from typing import Any

from knowledge.core.domain.catalogue import Model, UnknownModel
from trainer.architectures import number_of_experts

# Other names of the same sizes, as GPT-2, OPT and Falcon have them.
_ALIASES = {
    "hidden_size": ("n_embd", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size"),
    "num_key_value_heads": ("num_kv_heads",),
    "max_position_embeddings": ("n_positions", "max_seq_len"),
}
_FOUR_TIMES = ("gpt2", "gpt_bigcode", "falcon", "bloom", "mpt")  # the MLP's width where none is stated
_ONE_KEY = ("falcon", "gpt_bigcode")  # keys and values of one head, unless it says otherwise
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
        raw = _with_usual_names(raw.get("text_config", raw))
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
        "head_dim": raw.get("head_dim") or hidden // heads,
        "mlp_width": raw.get("moe_intermediate_size" if experts else "shared_intermediate_size") or width,
        "mlp_gated": raw.get("model_type") not in _PLAIN,
        "vocab": vocab,
        "max_context": raw.get("max_position_embeddings") or 2048,
        "tied_embeddings": bool(raw.get("tie_word_embeddings", False)),
        "attention_layers": layers,
        "experts": experts,
        "experts_per_token": raw.get("num_experts_per_tok") or 0,
        "shared_mlp_width": _shared_width(raw) if experts else 0,
    }
    active = Model(parameters=1, active_parameters=1, **shape)
    embedding = 0 if active.tied_embeddings else vocab * hidden
    matrices = 3 if active.mlp_gated else 2
    idle = layers * matrices * hidden * active.mlp_width * max(0, experts - active.experts_per_token)
    counted = int(active.matmul_parameters) + embedding
    return Model(parameters=counted + (idle if experts else 0), active_parameters=counted, **shape)


def _with_usual_names(raw: dict[str, Any]) -> dict[str, Any]:
    found = dict(raw)
    for usual, others in _ALIASES.items():
        stated = [raw[name] for name in (usual, *others) if raw.get(name) is not None]
        if stated:
            found[usual] = stated[0]
    if found.get("intermediate_size") is None and raw.get("model_type") in _FOUR_TIMES:
        found["intermediate_size"] = 4 * found["hidden_size"]
    if raw.get("multi_query", raw.get("model_type") in _ONE_KEY) and not raw.get("new_decoder_architecture"):
        found["num_key_value_heads"] = 1
    return found


def _shared_width(raw: dict[str, Any]) -> int:
    """The width of the experts that every token passes through, as configs state it."""
    stated = raw.get("shared_intermediate_size") or raw.get("shared_expert_intermediate_size")
    return int(stated or (raw.get("n_shared_experts") or 0) * (raw.get("moe_intermediate_size") or 0))
