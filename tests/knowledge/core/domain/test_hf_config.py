"""Models read from the config.json that their makers published, beside their known sizes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.catalogue import UnknownModel
from knowledge.core.domain.hf_config import model_from_config

GPT2 = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_inner": None,
    "n_positions": 1024,
    "vocab_size": 50257,
    "tie_word_embeddings": True,
}
GEMMA = {
    "model_type": "gemma",
    "hidden_act": "gelu",
    "head_dim": 256,
    "hidden_size": 2048,
    "intermediate_size": 16384,
    "max_position_embeddings": 8192,
    "num_attention_heads": 8,
    "num_hidden_layers": 18,
    "num_key_value_heads": 1,
    "tie_word_embeddings": True,
    "vocab_size": 256000,
}
OPT = {
    "model_type": "opt",
    "activation_function": "relu",
    "ffn_dim": 8192,
    "hidden_size": 2048,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 24,
    "tie_word_embeddings": True,
    "vocab_size": 50272,
}
FALCON = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "multi_query": True,
    "num_attention_heads": 71,
    "num_hidden_layers": 32,
    "num_kv_heads": 1,
    "tie_word_embeddings": True,
    "vocab_size": 65024,
}
NEOX = {
    "model_type": "gpt_neox",
    "hidden_act": "gelu",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 2048,
    "num_attention_heads": 8,
    "num_hidden_layers": 16,
    "tie_word_embeddings": False,
    "vocab_size": 50304,
}
# Files state what is unusual for the family alone, and sizes under the names that it has for them.
GEMMA2 = {
    "model_type": "gemma2",
    "head_dim": 256,
    "hidden_size": 3584,
    "intermediate_size": 14336,
    "num_attention_heads": 16,
    "num_hidden_layers": 42,
    "num_key_value_heads": 8,
    "vocab_size": 256000,
}
BLOOM = {
    "model_type": "bloom",
    "n_embed": 4096,
    "n_layer": 30,
    "num_attention_heads": 32,
    "vocab_size": 250880,
}
GPT_NEO = {
    "model_type": "gpt_neo",
    "hidden_size": 2048,
    "intermediate_size": None,
    "num_heads": 16,
    "num_layers": 24,
    "vocab_size": 50257,
}
DEEPSEEK = {  # V2 Lite: compressed keys and values, the first layer without experts
    "model_type": "deepseek_v2",
    "first_k_dense_replace": 1,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "kv_lora_rank": 512,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 16,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "tie_word_embeddings": False,
    "v_head_dim": 128,
    "vocab_size": 102400,
}


@pytest.mark.parametrize(
    ("config", "known"),
    [
        (GEMMA, "google/gemma-2b"),
        (GEMMA2, "google/gemma-2-9b"),
        (OPT, "facebook/opt-1.3b"),
        (NEOX, "EleutherAI/pythia-1b"),
    ],
)
def test_a_published_config_gives_the_known_model(config: dict[str, Any], known: str) -> None:
    read, model = model_from_config(json.dumps(config), known), shipped_catalogue().model(known)
    shape = ("architecture", "layers", "hidden", "heads", "kv_heads", "head_dim", "mlp_width", "mlp_gated")
    assert {name: getattr(read, name) for name in shape} == {name: getattr(model, name) for name in shape}
    assert read.parameters == pytest.approx(model.parameters, rel=0.005)


@pytest.mark.parametrize(
    ("config", "parameters"),
    [(GPT2, 124.4e6), (FALCON, 6.92e9), (BLOOM, 7.07e9), (GPT_NEO, 1.316e9), (DEEPSEEK, 15.71e9)],
)
def test_sizes_under_their_older_names_are_read(config: dict[str, Any], parameters: float) -> None:
    """The published numbers of weights; learned positions are not counted."""
    assert model_from_config(json.dumps(config), "a/b").parameters == pytest.approx(parameters, rel=0.01)


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        (GPT2, 1024),
        (BLOOM, 0),  # it adds a bias by distance
        (GEMMA, 8192),
        ({"text_config": GEMMA | {"max_position_embeddings": None}}, 0),
        ({"text_config": GEMMA, "max_position_embeddings": 77}, 8192),
    ],
)
def test_positions_are_those_stated(config: dict[str, Any], positions: int) -> None:
    assert model_from_config(json.dumps(config), "a/b").max_context == positions


@pytest.mark.parametrize("size", ["hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size"])
def test_a_config_without_a_size_is_refused(size: str) -> None:
    with pytest.raises(UnknownModel):
        model_from_config(json.dumps(GEMMA | {size: None}), "a/b")


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, (4096, 18)),
        ({"model_type": "mistral", "sliding_window": None}, (0, 0)),
        ({"model_type": "gemma2", "sliding_window": 4096}, (4096, 9)),
        ({"model_type": "gemma3_text", "sliding_window": 512}, (512, 15)),
        ({"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 3}, (512, 12)),
        ({"sliding_window": 512, "layer_types": ["full_attention", "sliding_attention"] * 9}, (512, 9)),
        ({"model_type": "qwen2", "sliding_window": 4096}, (0, 0)),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True}, (4096, 18)),
        ({"model_type": "phi3", "sliding_window": 2047, "use_sliding_window": False}, (0, 0)),
    ],
)
def test_windows_are_of_the_layers_that_the_family_has_them_in(
    config: dict[str, Any], windows: tuple[int, int]
) -> None:
    model = model_from_config(json.dumps(GEMMA | config), "a/b")
    assert (model.window, model.windowed_layers) == windows
