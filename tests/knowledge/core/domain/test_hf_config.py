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


@pytest.mark.parametrize(
    ("config", "known"),
    [(GEMMA, "google/gemma-2b"), (OPT, "facebook/opt-1.3b"), (NEOX, "EleutherAI/pythia-1b")],
)
def test_a_published_config_gives_the_known_model(config: dict[str, Any], known: str) -> None:
    read, model = model_from_config(json.dumps(config), known), shipped_catalogue().model(known)
    shape = ("architecture", "layers", "hidden", "heads", "kv_heads", "head_dim", "mlp_width", "mlp_gated")
    assert {name: getattr(read, name) for name in shape} == {name: getattr(model, name) for name in shape}
    assert read.parameters == pytest.approx(model.parameters, rel=0.005)


@pytest.mark.parametrize(("config", "parameters"), [(GPT2, 124.4e6), (FALCON, 6.92e9)])
def test_sizes_under_their_older_names_are_read(config: dict[str, Any], parameters: float) -> None:
    """The published numbers of weights; learned positions are not counted."""
    assert model_from_config(json.dumps(config), "a/b").parameters == pytest.approx(parameters, rel=0.01)


@pytest.mark.parametrize("size", ["hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size"])
def test_a_config_without_a_size_is_refused(size: str) -> None:
    with pytest.raises(UnknownModel):
        model_from_config(json.dumps(GEMMA | {size: None}), "a/b")
