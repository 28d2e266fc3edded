"""Sizes of published models, of which transformers makes ones without weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_NAMES = {
    "gpt2": {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    "bloom": {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    "opt": {"intermediate_size": "ffn_dim"},
}
_WITHOUT = {  # keys that an architecture's config.json lacks
    "gpt2": ("intermediate_size", "num_key_value_heads"),
    "bloom": ("intermediate_size", "num_key_value_heads"),
    "falcon": ("intermediate_size", "num_key_value_heads"),
    "gpt_neox": ("num_key_value_heads",),
    "opt": ("num_key_value_heads",),
}
_LONG: dict[str, Any] = {"max_position_embeddings": 2048}


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's sizes, and what else differs from transformers' defaults."""

    architecture: str
    hidden: int
    width: int
    layers: int
    heads: int
    keys: int
    words: int
    tied: bool = True
    more: dict[str, Any] = field(default_factory=dict)

    def configuration(self, layers: int | None = None) -> Any:
        """The config.json, if asked for with fewer layers."""
        from transformers import AutoConfig

        sizes = {
            "hidden_size": self.hidden,
            "intermediate_size": self.width,
            "num_hidden_layers": layers or self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.keys,
            "vocab_size": self.words,
            "tie_word_embeddings": self.tied,
        }
        names, without = _NAMES.get(self.architecture, {}), _WITHOUT.get(self.architecture, ())
        kept = {names.get(name, name): size for name, size in sizes.items() if name not in without}
        tokens = {"pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
        return AutoConfig.for_model(self.architecture, use_cache=False, **tokens, **kept, **self.more)


_MIXED_FALCON = {"multi_query": True, "parallel_attn": True, "bias": False, "new_decoder_architecture": False}
SHAPES = {
    "SmolLM-135M": Shape("llama", 576, 1536, 30, 9, 3, 49_152),
    "Llama-3.2-1B": Shape("llama", 2048, 8192, 16, 32, 8, 128_256),
    "TinyLlama-1.1B": Shape("llama", 2048, 5632, 22, 32, 4, 32_000, tied=False),
    "Llama-2-7b": Shape("llama", 4096, 11_008, 32, 32, 32, 32_000, tied=False),
    "Qwen2.5-0.5B": Shape("qwen2", 896, 4864, 24, 14, 2, 151_936),
    "Qwen2.5-1.5B": Shape("qwen2", 1536, 8960, 28, 12, 2, 151_936),
    "Qwen3-0.6B": Shape("qwen3", 1024, 3072, 28, 16, 8, 151_936, more={"head_dim": 128}),
    "gpt2": Shape("gpt2", 768, 3072, 12, 12, 12, 50_257),
    "gpt2-medium": Shape("gpt2", 1024, 4096, 24, 16, 16, 50_257),
    "opt-1.3b": Shape("opt", 2048, 8192, 24, 32, 32, 50_272, more={"word_embed_proj_dim": 2048, **_LONG}),
    "pythia-410m": Shape("gpt_neox", 1024, 4096, 24, 16, 16, 50_304, tied=False, more=_LONG),
    "pythia-1b": Shape("gpt_neox", 2048, 8192, 16, 8, 8, 50_304, tied=False, more=_LONG),
    "bloom-560m": Shape("bloom", 1024, 4096, 24, 16, 16, 250_880),
    "gemma-2b": Shape("gemma", 2048, 16_384, 18, 8, 1, 256_000, more={"head_dim": 256}),
    "gemma-2-2b": Shape("gemma2", 2304, 9216, 26, 8, 4, 256_000, more={"head_dim": 256}),
    "phi-2": Shape(
        "phi", 2560, 10_240, 32, 32, 32, 51_200, tied=False, more={"partial_rotary_factor": 0.4, **_LONG}
    ),
    "Phi-3-mini": Shape("phi3", 3072, 8192, 32, 32, 32, 32_064, tied=False, more={"sliding_window": 2047}),
    "Mistral-7B": Shape(
        "mistral", 4096, 14_336, 32, 32, 8, 32_000, tied=False, more={"sliding_window": None}
    ),
    "falcon-7b": Shape("falcon", 4544, 18_176, 32, 71, 1, 65_024, more=_MIXED_FALCON),
}
