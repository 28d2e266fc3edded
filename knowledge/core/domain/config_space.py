"""The configuration space: candidate values, derived values and launch rules.

It states which values are worth trying, which of them a person may fix, and which
configurations may not be launched. The parameters themselves (types, bounds, defaults) are in
`trainer.recipes`. A rule returns None or the reason why a configuration cannot start.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config
from trainer import architectures, recipes
from trainer.recipes import Binds, Param

PARAMS: dict[str, Param] = recipes.PARAMS
DISPATCH = tuple(name for name, param in PARAMS.items() if param.binds is Binds.DISPATCH)
FIELDS = tuple(field.name for field in fields(Config))
NOT_IDENTITY = ("software", "run_protocol", "reentrant_checkpointing")

ADAPTERS = ("lora", "qlora", "gptq-lora", "prompt-tuning")
QUANTIZED = ("qlora", "gptq-lora")
TUNINGS = ("full", *ADAPTERS)
PRECISIONS = ("bfloat16", "float16", "float32", "fp8")
STATUSES = ("ok", "oom", "failed", "refused")

MAX_PER_DEVICE_BATCH = 1024
# Our trainer, whatever it computes in: weights and moments in float32, logits of some positions at a time,
# adapters on all linear layers unless asked otherwise, what stays unquantised as wide as the computation.
OUR_TRAINER: Mapping[str, Any] = {
    "optimizer_state": "adamw-fp32",
    "chunked_loss": True,
    "target_modules": recipes.ALL_LINEAR,
    "unquantized_float32": False,
}

Values = tuple[Any, ...]


def per_device_batches(samples_per_gpu: int) -> tuple[int, ...]:
    """Return the per-device batch sizes to try, in rising order.

    They divide the samples that a GPU handles per optimiser step. All divisors are included,
    because a batch of 12 may hold 1, 2, 3, 4, 6 or 12 samples at a time.
    """
    limit = min(samples_per_gpu, MAX_PER_DEVICE_BATCH)
    return tuple(size for size in range(1, limit + 1) if samples_per_gpu % size == 0)


def bundles(node_sizes: tuple[int, ...], max_nodes: int) -> tuple[tuple[int, int], ...]:
    """Return the (nodes, GPUs) worth asking for.

    They are 1, 2, 4 ... GPUs on one node, then 2, 3 ... whole equal nodes.
    """
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
    """Return the bundles that the user left open.

    A fixed number of GPUs may be any that the nodes have. A fixed number of nodes need not be met
    by equal nodes: each gives as many GPUs as the smallest of them has.
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


def _batch_divides(config: Config, _: Catalogue) -> str | None:
    if config.per_device_batch_size < 1 or config.gradient_accumulation_steps < 1:
        return "The effective batch must be a multiple of the number of GPUs."
    return None


def _nodes_divide(config: Config, _: Catalogue) -> str | None:
    if config.number_gpus % config.number_nodes:
        return f"{config.number_gpus} GPUs cannot be spread evenly over {config.number_nodes} nodes."
    return None


def _replicas_are_whole(config: Config, _: Catalogue) -> str | None:
    degree = config.model_parallel or 1
    if config.number_gpus % degree:
        return f"{config.number_gpus} GPUs are not a multiple of the model-parallel degree {degree}."
    return None


def _experts_divide(config: Config, catalogue: Catalogue) -> str | None:
    degree = config.expert_parallel or 0
    if degree and config.number_gpus % degree:
        return f"{config.number_gpus} GPUs are not a multiple of the expert-parallel degree {degree}."
    model = catalogue.known_model(config.model_name) if degree > 1 else None
    if model is not None and model.experts % degree:
        return f"{model.experts} experts are not a multiple of the expert-parallel degree {degree}."
    return None


def _adapter_values(config: Config, _: Catalogue) -> str | None:
    if config.tuning not in ADAPTERS and (config.lora_r or config.lora_alpha):
        return f"LoRA values do not go with the tuning {config.tuning}."
    return None


def _quantization_fits(config: Config, catalogue: Catalogue) -> str | None:
    four_bit = config.quantization not in (None, "none")
    if four_bit and config.tuning not in QUANTIZED:
        return f"The tuning {config.tuning} trains an unquantised model; choose qlora."
    if config.gpu_model == "cpu" and config.tuning in QUANTIZED:
        return "4-bit training needs a GPU."
    return (why_not_four_bits(config.model_name, catalogue) or None) if config.tuning == "qlora" else None


def why_not_four_bits(model_name: str, catalogue: Catalogue) -> str:
    """Return why our trainer cannot store the model in 4 bits, with the remedy.

    The text is empty if the trainer can, or if this is not known.
    """
    model = catalogue.known_model(model_name)
    if model is None:
        return ""
    return architectures.why_not_four_bits(model_name, model.architecture, model.experts)


def why_too_long(model_name: str, tokens: int, catalogue: Catalogue) -> str:
    """Return why our trainer refuses samples so long, with the remedy, if so."""
    model = catalogue.known_model(model_name)
    return "" if model is None else architectures.why_too_long(model_name, model.max_context, tokens)


def can_shard(gpu_model: str, tuning: str, precision: str | None) -> bool:
    """Whether our trainer can cut the model over GPUs of this kind."""
    return gpu_model != "cpu" and recipes.can_shard(tuning, precision)


def _shardings(gpu_model: str, gpus: int, bound: Mapping[str, Any]) -> Values:
    if gpus == 1:
        return ("none",)
    return ("ddp", "fsdp") if can_shard(gpu_model, bound["tuning"], bound["precision"]) else ("ddp",)


# The settings that bind at dispatch, places and sizes aside: the values worth trying, the default first.
SETTINGS: Mapping[str, Values | Callable[[str, int, Mapping[str, Any]], Values]] = {
    "gradient_checkpointing": (True, False),
    "sharding": _shardings,
}

# Of these, physics and features have words of their own; the others are read by their type (`setting`).
_NAMED = ("gradient_checkpointing", "sharding")
OTHER_SETTINGS = tuple(name for name in SETTINGS if name not in _NAMED)
USUAL = {name: PARAMS[name].default for name in OTHER_SETTINGS} | {
    name: OUR_TRAINER[name] for name in ("target_modules", "unquantized_float32")
}


def setting(config: Config, name: str) -> float:
    """Return a setting as a number; NaN if unknown.

    A flag is 0 or 1, a choice its place among the choices.
    """
    value, choices = getattr(config, name), PARAMS[name].choices
    if value is None or (choices and value not in choices):
        return math.nan
    return float(choices.index(value) if choices else value)


def usual_setting(name: str) -> float:
    """The number of the stated default."""
    default, choices = PARAMS[name].default, PARAMS[name].choices
    return float(choices.index(default) if choices else default)


def candidate_values(name: str, gpu_model: str, gpus: int, bound: Mapping[str, Any]) -> Values:
    """Return the values of a setting that are worth trying.

    They depend on the number of GPUs and on what is bound at submit.
    """
    values = SETTINGS[name]
    return values(gpu_model, gpus, bound) if callable(values) else values


def _sharding_fits(config: Config, _: Catalogue) -> str | None:
    fits = recipes.shares_among(config.number_gpus, config.sharding)
    return None if fits else f"The sharding {recipes.SHARDING_RULE}."


RULES: tuple[Callable[[Config, Catalogue], str | None], ...] = (
    _batch_divides,
    _nodes_divide,
    _replicas_are_whole,
    _experts_divide,
    _adapter_values,
    _quantization_fits,
    _sharding_fits,
)


def refused(config: Config, catalogue: Catalogue) -> str | None:
    """Return the reason of the first launch rule that the configuration breaks.

    None means that it may start.
    """
    return next((reason for rule in RULES if (reason := rule(config, catalogue))), None)


def column_of(name: str) -> str:
    """The column of a setting in tables of runs: what we call tuning they call method."""
    return "method" if name == "tuning" else name


def config_hash(config: Config) -> str:
    """Return the identity of a configuration.

    It is equal for repeats, whatever software or protocol ran them. Repeats have one identity only under the
    catalogue's own names (`Catalogue.canonical`). The variant of checkpointing is software's choice as well:
    nobody is asked for it.
    """
    known = known_values(config).items()
    shared = {column_of(name): value for name, value in known if name not in NOT_IDENTITY}
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


def known_values(config: Config) -> dict[str, Any]:
    """Return the settings that are known.

    Without the unknown ones, a field added later makes no old value new. Nor does a setting at its stated
    default, which is how trainings ran before there was a choice.
    """
    found = ((name, getattr(config, name)) for name in FIELDS)
    return {name: value for name, value in found if value not in (None, USUAL.get(name))}
