"""The configuration space: which values are worth trying, which a person may fix, what may not be launched.

The parameters themselves (types, bounds, defaults) are in `trainer.recipes`; here are candidate values,
derived values and the launch rules. A rule answers None or the reason why a configuration cannot start.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from knowledge.core.domain import catalogue
from knowledge.core.domain.types import Config
from trainer import architectures, recipes
from trainer.recipes import RECIPES, Binds

PARAMS = RECIPES["sft"].params
SUBMIT = RECIPES["sft"].binding(Binds.SUBMIT)
DISPATCH = RECIPES["sft"].binding(Binds.DISPATCH)
FIELDS = tuple(field.name for field in fields(Config))
NOT_IDENTITY = ("software", "run_protocol", "reentrant_checkpointing")

ADAPTERS = ("lora", "qlora", "gptq-lora", "prompt-tuning")
QUANTIZED = ("qlora", "gptq-lora")
METHODS = ("full", *ADAPTERS)
PRECISIONS = ("bfloat16", "float16", "float32", "fp8")
STATUSES = ("ok", "oom", "failed", "refused")

MAX_PER_DEVICE_BATCH = 1024
# Our trainer, whatever it computes in: weights and moments in float32, logits of some positions at a time.
OUR_TRAINER: Mapping[str, Any] = {"optimizer_state": "adamw-fp32", "chunked_loss": True}


def per_device_batches(samples_per_gpu: int) -> tuple[int, ...]:
    """The per-device batch sizes that divide the samples a GPU handles per optimiser step, rising.

    All divisors, because a batch of 12 may hold 1, 2, 3, 4, 6 or 12 samples at a time.
    """
    limit = min(samples_per_gpu, MAX_PER_DEVICE_BATCH)
    return tuple(size for size in range(1, limit + 1) if samples_per_gpu % size == 0)


def bundles(node_sizes: tuple[int, ...], max_nodes: int) -> tuple[tuple[int, int], ...]:
    """The (nodes, GPUs) worth asking for: 1, 2, 4 ... on one node, then 2, 3 ... whole equal nodes."""
    if not node_sizes:
        return ()
    largest = max(node_sizes)
    inside = {2**power for power in range(largest.bit_length()) if 2**power <= largest} | {largest}
    found = [(1, gpus) for gpus in sorted(inside)]
    whole = sum(1 for size in node_sizes if size == largest)
    return (*found, *((nodes, nodes * largest) for nodes in range(2, min(whole, max_nodes) + 1)))


def open_bundles(
    node_sizes: tuple[int, ...], fixed: Mapping[str, Any], max_nodes: int
) -> list[tuple[int, int]]:
    """The bundles that the user left open; a fixed number of GPUs may be any that the nodes have.

    So many nodes as were fixed need not be equal: each gives as many GPUs as the smallest of them has.
    """
    gpus, nodes = fixed.get("number_gpus"), fixed.get("number_nodes")
    if gpus is None:
        found = [bundle for bundle in bundles(node_sizes, max_nodes) if nodes in (None, bundle[0])]
        if found or nodes is None or nodes > min(len(node_sizes), max_nodes):
            return found
        return [(nodes, nodes * sorted(node_sizes, reverse=True)[nodes - 1])]
    for count in range(1, min(len(node_sizes), max_nodes) + 1):
        share, whole = gpus // count, gpus % count == 0
        if nodes in (None, count) and whole and sum(size >= share for size in node_sizes) >= count:
            return [(count, gpus)]
    return []


def _batch_divides(config: Config) -> str | None:
    if config.per_device_batch_size < 1 or config.gradient_accumulation_steps < 1:
        return "The effective batch must be a multiple of the number of GPUs."
    return None


def _nodes_divide(config: Config) -> str | None:
    if config.number_gpus % config.number_nodes:
        return f"{config.number_gpus} GPUs cannot be spread evenly over {config.number_nodes} nodes."
    return None


def _replicas_are_whole(config: Config) -> str | None:
    degree = config.model_parallel or 1
    if config.number_gpus % degree:
        return f"{config.number_gpus} GPUs are not a multiple of the model-parallel degree {degree}."
    return None


def _experts_divide(config: Config) -> str | None:
    degree = config.expert_parallel or 0
    if degree and config.number_gpus % degree:
        return f"{config.number_gpus} GPUs are not a multiple of the expert-parallel degree {degree}."
    return None


def _adapter_values(config: Config) -> str | None:
    if config.method not in ADAPTERS and (config.lora_r or config.lora_alpha):
        return f"LoRA values do not go with the method {config.method}."
    return None


def _quantization_fits(config: Config) -> str | None:
    four_bit = config.quantization not in (None, "none")
    if four_bit and config.method not in QUANTIZED:
        return f"The method {config.method} trains an unquantised model; choose qlora."
    if config.gpu_model == "cpu" and config.method in QUANTIZED:
        return "4-bit training needs a GPU."
    return (why_not_four_bits(config.model_name) or None) if config.method == "qlora" else None


def why_not_four_bits(model_name: str) -> str:
    """Why our trainer cannot store the model in 4 bits, with the remedy; empty if it can, or is not known."""
    model = catalogue.known_model(model_name)
    if model is None:
        return ""
    return architectures.why_not_four_bits(model_name, model.architecture, model.experts)


def can_shard(gpu_model: str, method: str, precision: str | None) -> bool:
    """Whether our trainer can cut the model over GPUs of this kind."""
    return gpu_model != "cpu" and recipes.can_shard(method, precision)


def _sharding_fits(config: Config) -> str | None:
    if config.number_gpus == 1 and config.sharding in ("ddp", "fsdp", "hybrid"):
        return f"{config.sharding} needs two GPUs or more."
    if config.number_gpus > 1 and config.sharding == "none":
        return "Several GPUs need ddp or fsdp."
    return None


RULES: tuple[Callable[[Config], str | None], ...] = (
    _batch_divides,
    _nodes_divide,
    _replicas_are_whole,
    _experts_divide,
    _adapter_values,
    _quantization_fits,
    _sharding_fits,
)


def refused(config: Config) -> str | None:
    """The reason of the first launch rule that the configuration breaks, or None if it may start."""
    return next((reason for rule in RULES if (reason := rule(config))), None)


def canonical(config: Config) -> Config:
    """The configuration under the catalogue's own names; unknown names stay as they are."""
    gpu = catalogue.known_gpu(config.gpu_model)
    return replace(
        config,
        model_name=model_key(config.model_name),
        gpu_model=gpu.gpu_model if gpu else config.gpu_model,
    )


def model_key(name: str) -> str:
    """The catalogue's own name of a model; a name it does not have stays as it is."""
    model = catalogue.known_model(name)
    return model.model_name if model else name


def config_hash(config: Config) -> str:
    """The identity of a configuration: equal for repeats, whatever software or protocol ran them.

    The variant of checkpointing is software's choice as well: nobody is asked for it.
    """
    told = known_values(canonical(config))
    shared = {name: value for name, value in told.items() if name not in NOT_IDENTITY}
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


def known_values(config: Config) -> dict[str, Any]:
    """The settings that are known; without the unknown ones, a field added later makes no old value new."""
    found = ((name, getattr(config, name)) for name in FIELDS)
    return {name: value for name, value in found if value is not None}
