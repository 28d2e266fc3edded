"""Facts of an architecture that decide how it can be trained.

They come from a model's config.json. Standard library only: the portal reads it as well as the
trainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
# A bound on the tokens of a sample, under its usual name first.
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "context_length")
# Packages of fused kernels for hybrids, by the name that they are imported by.
KERNELS = {
    "causal_conv1d": "causal-conv1d",
    "fla": "flash-linear-attention",
    "mamba_ssm": "mamba-ssm",
}
_PARTS = ("text_config", "ffn_config")
_OWN_LINEAR_LAYERS = ("falcon",)  # bitsandbytes knows torch's alone


def number_of_experts(config: Mapping[str, Any]) -> int:
    """Experts of a layer that a router chooses from; 0 for a model without."""
    found = [config.get(name) for name in EXPERTS]
    counted = max((count for count in found if isinstance(count, int)), default=0)
    inside = (part for name in _PARTS if isinstance(part := config.get(name), Mapping))
    most = max((counted, *map(number_of_experts, inside)))
    return most if most > 1 else 0


def positions(config: Mapping[str, Any]) -> int:
    """The most tokens of a sample; 0 where the config states no bound."""
    inside = config.get("text_config")
    text = inside if isinstance(inside, Mapping) else config
    found = (text.get(name) for name in POSITIONS)
    return next((count for count in found if isinstance(count, int) and count > 0), 0)


def keys_picked(config: Mapping[str, Any]) -> int:
    """How many keys attention picks for each token; 0 where it sees all of them."""
    inside = config.get("text_config")
    count = (inside if isinstance(inside, Mapping) else config).get("index_topk")
    return count if isinstance(count, int) and count > 0 else 0


def why_too_long(model: str, most: int, tokens: int) -> str:
    """Why samples of so many tokens are not for this model, or nothing.

    The remedy comes with it. most: as `positions` has it.
    """
    if not 0 < most < tokens:
        return ""
    return f"{model} has {most:,} positions: choose at most {most} tokens per sample."


def why_not_four_bits(model: str, architecture: str, experts: int) -> str:
    """Why the tuning qlora is not for this model, with the remedy; empty if it may be.

    architecture: `model_type` of its config.json. experts: as `number_of_experts` has it.
    """
    if experts:
        why = "is a mixture of experts, and experts cannot be stored in 4 bits"
    elif architecture in _OWN_LINEAR_LAYERS:
        why = f"has linear layers of its own ({architecture}), which cannot be stored in 4 bits"
    else:
        return ""
    return f"{model} {why}; choose the tuning lora, or another model."
