"""The config.json of a catalogued model.

It holds what it takes to build the architecture with random weights.
"""

from __future__ import annotations

from typing import Any

from knowledge.core.domain.catalogue import Model

# Architectures whose sizes have the names of Llama's, under their own model_type.
ALIKE = ("llama", "mistral", "qwen2", "qwen3", "granite")


class UnknownSizes(ValueError):
    """The catalogue's sizes do not suffice to build the architecture.

    The message says why.
    """


def config_json(model: Model) -> dict[str, Any]:
    """The Hugging Face configuration of a decoder with the model's sizes.

    Gated decoders of other families become a Llama of the same sizes, mixtures of experts a Mixtral, plain
    ones a GPT-NeoX: the same matrix products, which is what time and memory hang on. Raises UnknownSizes.
    """
    if model.attention_layers != model.layers:
        raise UnknownSizes(
            f"{model.model_name} mixes attention with state-space layers; choose another model"
        )
    if model.shared_mlp_width:
        raise UnknownSizes(f"{model.model_name} has shared experts; choose another model")
    sizes: dict[str, Any] = {
        "model_type": _model_type(model),
        "vocab_size": model.vocab,
        "hidden_size": model.hidden,
        "intermediate_size": model.mlp_width,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "tie_word_embeddings": model.tied_embeddings,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    if model.max_context:
        sizes["max_position_embeddings"] = model.max_context
    if sizes["model_type"] == "gpt_neox":
        return sizes
    sizes |= {"num_key_value_heads": model.kv_heads, "head_dim": model.head_dim}
    if model.experts:
        sizes |= {"num_local_experts": model.experts, "num_experts_per_tok": model.experts_per_token}
    return sizes


def _model_type(model: Model) -> str:
    if model.mlp_gated:
        family = model.architecture if model.architecture in ALIKE else "llama"
        return "mixtral" if model.experts else family
    if model.kv_heads != model.heads or model.head_dim * model.heads != model.hidden:
        raise UnknownSizes(
            f"{model.model_name} shares keys between heads in a way of its own; choose another model"
        )
    return "gpt_neox"
