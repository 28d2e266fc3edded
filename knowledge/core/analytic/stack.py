"""How the software of a configuration stores weights and computes."""

from __future__ import annotations

from knowledge.core.domain import adapted_layers, config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

PAGED = "paged-adamw-fp32"
HYBRID = "hybrid"
# Optimiser states in bytes per trained parameter (weights, gradients, moments): ZeRO, table of section 3.
STATE_BYTES = {"adamw-fp32": 16.0, "adamw-bf16": 8.0, "adamw-8bit": 6.0, PAGED: 16.0}


def is_fsdp(config: Config) -> bool:
    """Tell whether GPUs hold shards of the model."""
    return config.number_gpus > 1 and config.sharding in (None, "fsdp", HYBRID) and config.gpu_model != "cpu"


def autocasts(config: Config) -> bool:
    """Tell whether weights that learn are wider than the computation."""
    if config.precision == "float32" or is_fsdp(config):  # which casts what it gathers
        return False
    silent_adapter = config.optimizer_state is None and config.method in config_space.ADAPTERS
    return silent_adapter or config.optimizer_state in {"adamw-fp32", PAGED}


def _ours(config: Config) -> bool:
    """Tell whether our trainer ran it; earlier runs of it state no more than this."""
    return config.chunked_loss is True and config.optimizer_state == "adamw-fp32"


def upcasts(config: Config) -> bool:
    """Tell whether 4-bit weights were prepared as peft does; most are."""
    if config.unquantized_float32 is None:
        return config.method == "qlora" and config.precision != "float32" and not _ours(config)
    return config.unquantized_float32 and config.precision != "float32"


def repeats(config: Config, catalogue: Catalogue) -> bool:
    """Tell whether attention copies keys and values for all heads.

    GPUs before Ampere have no kernel that does without.
    """
    sheet = catalogue.gpu(config.gpu_model)
    return sheet.vendor == "NVIDIA" and sheet.bf16_flops is None and config.flash_attention is not True


def placement(config: Config) -> str:
    """Where adapters are; the usual place if unknown."""
    if config.method not in config_space.ADAPTERS:
        return adapted_layers.ALL_LINEAR  # every linear layer keeps its input
    usual = adapted_layers.ALL_LINEAR if _ours(config) else adapted_layers.UNSTATED
    return adapted_layers.placement(config.target_modules or "") or usual


def state_bytes(config: Config) -> float:
    """Return the bytes of a trained parameter: weight, gradient, optimiser."""
    if config.optimizer_state in STATE_BYTES:
        return STATE_BYTES[config.optimizer_state]
    # Accelerate keeps what FSDP shards in float32 whatever is computed in, but for experts that GPUs share.
    upcast = config.precision is not None and is_fsdp(config) and (config.expert_parallel or 1) == 1
    return 16.0 if upcast or config.precision == "float32" else 8.0
