"""Tiny random models of real architectures, with the tokenizer of bytes, as folders of the hub have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BASE = {
    "vocab_size": 259,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_WIDE = {**BASE, "head_dim": 8}
_CHOSEN = {"num_experts_per_tok": 2, "moe_intermediate_size": 24}
_VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}
_SHARING = {
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
_DEEP = {
    **_SHARING,
    "kv_lora_rank": 8,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
SIZES: dict[str, dict[str, Any]] = {
    "llama": BASE,
    "qwen2": BASE,
    "qwen3": _WIDE,
    "mistral": BASE,
    "granite": BASE,
    "gemma3_text": _WIDE,
    "phi3": BASE,
    "falcon": BASE,
    "gpt2": {"vocab_size": 259, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128},
    "gpt_neox": BASE,
    "opt": {**BASE, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "mamba": {"vocab_size": 259, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "mixtral": {**BASE, "num_local_experts": 4, "num_experts_per_tok": 2},
    "granitemoe": {**BASE, "num_local_experts": 4, "num_experts_per_tok": 2},
    "granitemoeshared": {
        **BASE,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 40,
    },
    "phimoe": {**BASE, "num_local_experts": 4, "num_experts_per_tok": 2},
    "olmoe": {**BASE, "num_experts": 4, "num_experts_per_tok": 2},
    "gpt_oss": {**_WIDE, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": {**BASE, **_CHOSEN, "num_experts": 4, "shared_expert_intermediate_size": 40},
    "qwen3_moe": {**_WIDE, **_CHOSEN, "num_experts": 4},
    "deepseek_v2": {**BASE, **_CHOSEN, **_DEEP, "num_key_value_heads": 4},
    "deepseek_v3": {**BASE, **_CHOSEN, **_DEEP, "num_key_value_heads": 4},
    "glm4_moe": {**_WIDE, **_CHOSEN, **_SHARING},
    "llama4_text": {**_WIDE, "num_local_experts": 4, "intermediate_size_mlp": 40},
    "jetmoe": {**BASE, "kv_channels": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "gemma3": {
        "text_config": _WIDE,
        "vision_config": _VISION,
        "mm_tokens_per_image": 1,
        "image_token_index": 258,
        "boi_token_index": 257,
        "eoi_token_index": 256,
    },
    "git": {**BASE, "vision_config": _VISION},
    "bert": BASE,
    "electra": {**BASE, "embedding_size": 32},
}


def built(name: str) -> Any:
    """A model of the architecture, the same weights each time."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **SIZES[name]))


def save(model: Any, folder: Path, positions: int = 128) -> Path:
    """The model with its tokenizer in a folder."""
    from transformers.utils import logging

    from trainer.builtin import byte_tokenizer

    logging.disable_progress_bar()
    model.save_pretrained(folder)
    byte_tokenizer(positions).save_pretrained(folder)
    return folder
