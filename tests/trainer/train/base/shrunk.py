"""Tiny random models of every kind that continues text, shrunk by rule.

A rule is the name of a size in a configuration; kinds whose sizes depend on each other in a way of their own
are named. Dropout is off, since each loop draws numbers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LAYERS = 2
POSITIONS = 512
VOCABULARY = 300
_EXPERTS = (*("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "ffn_num_experts"),)
SIZES: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    **dict.fromkeys(
        ("hidden_size", "n_embd", "d_model", "attention_hidden_size", "lru_width", "conv_dim"), 32
    ),
    **dict.fromkeys(("block_dim",), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"), LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_global_key_value_heads"), 2),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), POSITIONS),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "ffn_hidden_size"), 48),
    **dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size", "expert_hidden_dim"), 24),
    **dict.fromkeys(("shared_expert_intermediate_size", "shared_intermediate_size"), 40),
    **dict.fromkeys(("intermediate_size_mlp", "moe_shared_expert_intermediate_size"), 40),
    **dict.fromkeys(_EXPERTS, 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"), 2),
    **dict.fromkeys(("n_shared_experts", "num_shared_experts", "num_experts_shared", "n_group"), 1),
    **dict.fromkeys(("moe_num_shared_experts", "topk_group", "first_k_dense_replace", "num_dense_layers"), 1),
    **dict.fromkeys(("moe_layer_start_index", "num_mem_blocks", "mamba_n_groups", "n_groups"), 1),
    **dict.fromkeys(("head_dim", "global_head_dim", "swa_head_dim", "index_head_dim", "rotary_dim"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "kv_lora_rank"), 8),
    **dict.fromkeys(("state_size", "ssm_state_size", "mamba_d_state", "mamba_head_dim", "mamba_d_head"), 8),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads", "hidden_size_per_layer_input"), 8),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 8),
    **dict.fromkeys(("q_lora_rank", "sliding_window", "attention_window_size", "attention_chunk_size"), 16),
    **dict.fromkeys(("chunk_size", "mamba_chunk_size", "attn_chunk", "block_size", "index_topk"), 16),
    **dict.fromkeys(("mamba_d_conv", "mamba_dt_rank", "laurel_rank", "linear_num_value_heads"), 4),
    **dict.fromkeys(("mamba_expand", "linear_num_key_heads", "index_n_heads"), 2),
    "mamba_d_ssm": 64,
    "num_kv_shared_layers": 0,
    "moe_layers": None,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# One value a layer: as many as there are layers.
_BY_LAYER = (
    *("layer_types", "mlp_layer_types", "layers_block_type", "attn_type_list", "no_rope_layers"),
    *("block_types", "activation_sparsity_pattern", "attention_types"),
)
_LINEAR = {"layer_types": ["linear_attention", "full_attention"]}
_SLIDING = {"layer_types": ["sliding_attention", "full_attention"]}
_CONVOLVED = {"layer_types": ["conv", "full_attention"]}
OWN: dict[str, dict[str, Any]] = {
    "qwen3_next": _LINEAR,
    "qwen3_5_text": _LINEAR,
    "qwen3_5_moe_text": _LINEAR,
    "minimax": _LINEAR,
    "olmo_hybrid": _LINEAR,
    "olmo3": _SLIDING,
    "gemma4_text": _SLIDING,
    "cohere2": _SLIDING,
    "exaone4": _SLIDING,
    "gemma3n_text": {**_SLIDING, "activation_sparsity_pattern": [0.95, 0.0]},
    "lfm2": _CONVOLVED,
    "lfm2_moe": _CONVOLVED,
    "smollm3": {"no_rope_layers": [1, 0], "layer_types": None},
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "use_mamba_kernels": False,
    },
    "bamba": {"attn_layer_indices": [1]},
    "nemotron_h": {
        "num_hidden_layers": 4,
        "hybrid_override_pattern": "M*-E",
        "layers_block_type": None,
        "expand": 2,
    },
    "mamba2": {"num_heads": 8, "head_dim": 8, "expand": 2},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "layers_block_type": ["mamba", "attention"]},
    "deepseek_v4": {
        "o_groups": 2,
        "o_lora_rank": 8,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "layer_types": ["heavily_compressed_attention", "compressed_sparse_attention"],
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "zaya": {"num_experts_per_tok": 1},
    "reformer": {"is_decoder": True},
}


def causal_kinds() -> list[str]:
    """Kinds of models that continue text, as the installed transformers has them."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    return sorted({config.model_type for config in MODEL_FOR_CAUSAL_LM_MAPPING})


def configuration(kind: str, **sizes: Any) -> Any:
    """A configuration of this kind with few and small parts."""
    from transformers import CONFIG_MAPPING

    described = CONFIG_MAPPING[kind]().to_dict()
    changed = _smaller(described, kind) | sizes
    text = described.get("text_config")
    if isinstance(text, Mapping):
        inner = str(text.get("model_type", kind))
        changed["text_config"] = {"model_type": inner, **_smaller(text, inner)}
    return CONFIG_MAPPING[kind](**changed)


def shrunk(kind: str, **sizes: Any) -> Any:
    """A random model of this kind, the same weights each time."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(configuration(kind, **sizes))


def _smaller(described: Mapping[str, Any], kind: str) -> dict[str, Any]:
    own = OWN.get(kind, {})
    sizes = {name: size for name, size in SIZES.items() if name in described}
    sizes |= {name: described[name][:LAYERS] for name in _BY_LAYER if isinstance(described.get(name), list)}
    sizes |= {name: 0.0 for name, share in described.items() if "drop" in name and isinstance(share, float)}
    if isinstance(described.get("mlp_only_layers"), list):
        sizes["mlp_only_layers"] = []
    if "qk_rope_head_dim" in described:
        sizes.pop("head_dim", None)
    if "kv_lora_rank" in described:  # keys are made for each head
        sizes["num_key_value_heads"] = SIZES["num_attention_heads"]
    return {name: size for name, size in (sizes | own).items() if size is not None or name in own}
