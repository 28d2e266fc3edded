"""How the software of a configuration stores weights and computes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from knowledge.core.domain import adapted_layers, config_space, layer_kinds
from knowledge.core.domain.catalogue import Catalogue, Model
from knowledge.core.domain.types import Config

PAGED = "paged-adamw-fp32"
HYBRID = "hybrid"
# Optimiser states in bytes per trained parameter (weights, gradients, moments): ZeRO, table of section 3.
STATE_BYTES = {"adamw-fp32": 16.0, "adamw-bf16": 8.0, "adamw-8bit": 6.0, PAGED: 16.0}
UNKNOWN_SOFTWARE = "unknown"
LITGPT = "LitGPT"
FREEING = (0, 43, 2)  # bitsandbytes from here on keeps no input of a 4-bit layer (its pull request 1270)
# fms-hf-tuning takes a TRL from here on (0.15 and later) that counts how many tokens are predicted right.
COUNTING = (2, 8)
NEWER_PYTORCH = (3, 0, 0, 1)  # fms-hf-tuning with PyTorch 2.8 (its `pyproject.toml`)
NEWER_MISTRAL = (2, 5)  # fms-hf-tuning whose transformers may be 4.48 or later
# transformers from here on asks PyTorch to let heads share keys where there is no mask (pull request 39412).
SHARING = (4, 54)
REPEATING = frozenset({"mistral", "mixtral"})
NEWER_CAMPAIGNS = "2025"  # of fms-acceleration, with transformers 4.48.1 (its `refs/requirements_*.txt`)
DROPPING_CAMPAIGNS = "2024-07-15"  # from here on its scenarios ask for a dropout of 0.1, before of 0
# The usual values of settings that memory depends on. An attention of None is fused, as the GPU has it.
USUAL: Mapping[str, tuple[Any, ...]] = {
    "optimizer_state": ("adamw-fp32", "adamw-bf16"),
    "flash_attention": (None, False),
    "target_modules": (adapted_layers.QUERY_VALUE, adapted_layers.ALL_LINEAR),
    "unquantized_float32": (True, False),
}


def is_fsdp(config: Config) -> bool:
    """Tell whether GPUs hold shards of the model."""
    return config.number_gpus > 1 and config.sharding in (None, "fsdp", HYBRID) and config.gpu_model != "cpu"


def autocasts(config: Config) -> bool:
    """Tell whether weights that learn are wider than the computation."""
    if config.precision == "float32" or is_fsdp(config) or is_litgpt(config):  # the latter two cast weights
        return False
    silent_adapter = config.optimizer_state is None and config.tuning in config_space.ADAPTERS
    return silent_adapter or config.optimizer_state in {"adamw-fp32", PAGED}


def is_ours(config: Config) -> bool:
    """Tell whether our trainer ran it; earlier runs of it state no more than this."""
    stated = config.chunked_loss is True and config.optimizer_state == "adamw-fp32"
    return stated and not uses_fms_acceleration(config)


def software_family(config: Config) -> str:
    """Return the software without its version, which may be all of it."""
    return UNKNOWN_SOFTWARE if config.software is None else config.software.split()[0].rstrip("0123456789.-")


def is_litgpt(config: Config) -> bool:
    """Tell whether LitGPT ran it, in 16 bits, as its configurations do."""
    return config.precision in ("bfloat16", "float16") and software_family(config) == LITGPT


def keeps_inputs(config: Config) -> bool:
    """Tell whether 4-bit layers keep their inputs, whether they learn or not.

    bitsandbytes did before a version, and software of which no version is stated has a later one.
    """
    version = re.search(r"bitsandbytes (\d+)\.(\d+)\.(\d+)", config.software or "")
    kept = version is not None and tuple(map(int, version.groups())) < FREEING
    return kept and in_4_bits(config) and config.quantization in (None, "bnb-4bit")


def counts_accuracy(config: Config) -> bool:
    """Tell whether the loop counts tokens predicted right, by a copy of the logits.

    TRL shifts them by one position, which leaves a batch of one sample where it is. LLMFineTuningBench names
    its software, fms-hf-tuning, by version alone.
    """
    version = _tuning_version(config)
    return version is not None and version >= COUNTING and config.per_device_batch_size > 1


def is_newer_pytorch(config: Config) -> bool:
    """Tell whether PyTorch is 2.8 or later, with NCCL 2.27; unknown counts as older."""
    version = _tuning_version(config)
    return is_ours(config) or (version is not None and version >= NEWER_PYTORCH)


def _tuning_version(config: Config) -> tuple[int, ...] | None:
    """The version of fms-hf-tuning, if that ran it."""
    version = re.fullmatch(r"(?:fms-hf-tuning )?(\d+\.\d+(?:\.\d+)*)", config.software or "")
    return None if version is None else tuple(map(int, version[1].split(".")))


def in_4_bits(config: Config) -> bool:
    """Tell whether the base model is quantised."""
    return config.tuning in config_space.QUANTIZED or config.quantization not in (None, "none")


def keeps_scales(config: Config) -> bool:
    """Tell whether each GPU has the scales of all weights in 4 bits."""
    theirs = config.quantization in (None, "bnb-4bit")
    return is_fsdp(config) and in_4_bits(config) and config.tuning == "qlora" and theirs


def upcasts(config: Config) -> bool:
    """Tell whether 4-bit weights were prepared as peft does; most are."""
    if config.precision == "float32" or not in_4_bits(config):
        return False
    stated = config.unquantized_float32
    return stated if stated is not None else config.tuning == "qlora" and not is_ours(config)


def lifts(config: Config, catalogue: Catalogue) -> bool:
    """Tell whether layers on 4-bit weights compute and hand on float32.

    bitsandbytes gives the width that it gets. Autocast on GPUs hands it float32 from a layer norm; norms of
    root mean squares return to the width of their input.
    """
    if upcasts(config):
        return True
    autocast = casts_norms(config) or uses_fms_acceleration(config)  # whose runs on 4-bit weights ask for it
    lifted = config.tuning == "qlora" and autocast and config.gpu_model != "cpu"
    return lifted and not layer_kinds.kind_of(catalogue.model(config.model_name)).root_mean_square


def casts_norms(config: Config) -> bool:
    """Tell whether layer norms and powers are computed in float32.

    Autocast does so beside a computation in less, on GPUs, as transformers' Trainer has it too.
    """
    wider = is_ours(config) or autocasts(config)
    return wider and config.precision != "float32" and config.gpu_model != "cpu"


def holds_inputs(config: Config) -> bool:
    """Tell whether FSDP holds checkpointed inputs to a backward pass's end.

    Its hook on a frozen layer keeps the graph of the layer's inputs (PyTorch's `register_multi_grad_hook`).
    With the older variant of checkpointing, around the layer, these are leaves, and have gradients. So it was
    with transformers before 4.52 where nobody chose the other variant.
    """
    frozen = is_fsdp(config) and config.tuning in config_space.ADAPTERS
    return frozen and uses_fms_acceleration(config) and config.gradient_checkpointing is not False


def attends_eagerly(config: Config, *, alone: bool) -> bool:
    """Tell whether attention holds its scores.

    An unknown kind counts as fused where there is one. alone: the model's family has no other than eager.
    """
    if config.flash_attention is None:
        return alone and not is_litgpt(config)
    return not config.flash_attention


def windowed(config: Config, model: Model) -> float:
    """Return the share of layers whose window is no longer than a sample.

    transformers hands these to PyTorch as a mask. flash-attn knows windows.
    """
    masked = 0 < model.window <= config.tokens_per_sample and config.flash_attention is not True
    return model.windowed_layers / model.layers if masked else 0.0


def attends_plainly(config: Config, catalogue: Catalogue) -> bool:
    """Tell whether PyTorch computes attention by plain products, in float32.

    It does where keys are to be shared by heads and no kernel can: Falcon hands over one key for all heads,
    and a GPU from before Ampere has no such kernel. One sample at a time is never padded, so it has no mask,
    which would have keys copied.
    """
    if config.flash_attention is not None or is_litgpt(config):
        return False
    sheet, model = catalogue.gpu(config.gpu_model), catalogue.model(config.model_name)
    if layer_kinds.hands_over_one_key(model):
        return True
    version = re.search(r"transformers (\d+)\.(\d+)", config.software or "")
    newer = version is not None and (int(version[1]), int(version[2])) >= SHARING and not is_ours(config)
    older = sheet.vendor == "NVIDIA" and sheet.bf16_flops is None
    shared = model.kv_heads < model.heads and not layer_kinds.holds_scores(model)
    alone = config.per_device_batch_size == 1 and not windowed(config, model)
    return newer and older and shared and alone


def repeats(config: Config, catalogue: Catalogue) -> bool:
    """Tell whether attention copies keys and values for all heads.

    GPUs before Ampere have no kernel that does without, flash-attn among them, and later ones have none in
    float32.
    """
    sheet = catalogue.gpu(config.gpu_model)
    wide = config.precision == "float32" and config.flash_attention is not True
    alone = sheet.vendor == "NVIDIA" and (sheet.bf16_flops is None or wide)
    return alone or repeats_for_flash(config, catalogue)


def repeats_for_flash(config: Config, catalogue: Catalogue) -> bool:
    """Tell whether it does so for a kernel that needs no copies.

    Mistral and Mixtral did in transformers before 4.48 (`MistralFlashAttention2`), which fms-hf-tuning took
    up to 2.4, and fms-acceleration with it until 2024.
    """
    version = _tuning_version(config)
    campaign = _campaign(config)
    older = campaign < NEWER_CAMPAIGNS if campaign else version is not None and version < NEWER_MISTRAL
    repeating = catalogue.model(config.model_name).architecture in REPEATING
    return older and repeating and config.flash_attention is True


def drops_out(config: Config) -> bool:
    """Tell whether adapters drop a share of their input.

    fms-hf-tuning does unless told otherwise (0.05 in `peft_config.py`); the scenarios of fms-acceleration
    asked for none at first (its column `lora_dropout`).
    """
    if config.tuning not in config_space.ADAPTERS or is_ours(config):
        return False
    if uses_fms_acceleration(config):
        return (_campaign(config) or DROPPING_CAMPAIGNS) >= DROPPING_CAMPAIGNS
    return _tuning_version(config) is not None


def uses_fms_acceleration(config: Config) -> bool:
    """Tell whether the benchmarks of fms-acceleration ran it."""
    return (config.software or "").startswith("fms-acceleration")


def _campaign(config: Config) -> str:
    """The day of a campaign of fms-acceleration; empty if not stated."""
    found = re.fullmatch(r"fms-acceleration (\d{4}-\d\d-\d\d)", config.software or "")
    return found[1] if found else ""


def placement(config: Config) -> str:
    """Where adapters are; the usual place if unknown."""
    if config.tuning not in config_space.ADAPTERS:
        return adapted_layers.ALL_LINEAR  # every linear layer keeps its input
    usual = adapted_layers.ALL_LINEAR if is_ours(config) else adapted_layers.UNSTATED
    return _stated_placement(config) or usual


def keeping(config: Config) -> str:
    """Where linear layers keep their inputs: at the adapters, or everywhere."""
    return adapted_layers.ALL_LINEAR if keeps_inputs(config) else placement(config)


def _stated_placement(config: Config) -> str | None:
    return adapted_layers.placement(config.target_modules or "")


def unstated(config: Config) -> list[str]:
    """Return the settings of USUAL that matter here and are not stated."""
    if is_ours(config):  # which has one attention, one placement and one width
        return []
    open_settings = {
        "optimizer_state": config.optimizer_state is None,
        "flash_attention": config.flash_attention is None,
        "target_modules": config.tuning in config_space.ADAPTERS and _stated_placement(config) is None,
        "unquantized_float32": config.unquantized_float32 is None and upcasts(config),
    }
    return [name for name, is_open in open_settings.items() if is_open]


def usual_variants(config: Config) -> list[Config]:
    """Return every combination of usual values for what is not stated."""
    names = unstated(config)
    combinations = product(*(USUAL[name] for name in names))
    return [replace(config, **dict(zip(names, values, strict=True))) for values in combinations]


def state_bytes(config: Config) -> float:
    """Return the bytes of a trained parameter: weight, gradient, optimiser."""
    if config.optimizer_state in STATE_BYTES:
        return STATE_BYTES[config.optimizer_state]
    # Accelerate keeps what FSDP shards in float32 whatever is computed in, but for experts that GPUs share.
    upcast = config.precision is not None and is_fsdp(config) and (config.expert_parallel or 1) == 1
    return 16.0 if upcast or config.precision == "float32" else 8.0
