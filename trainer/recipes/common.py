"""What recipes share: parameters, taken by reference, and rules between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.recipes.params import Binds, Constant, Param

ALL_LINEAR, ATTENTION = "all-linear", "attention"  # where adapters may be
SHARDING_RULE = "none is for one GPU, ddp and fsdp for several"


def can_shard(tuning: str | None, precision: str | None) -> bool:
    """Whether fsdp goes with these: it needs unquantised weights, and no loss scaling."""
    return tuning != "qlora" and precision != "float16"


def shares_among(gpus: int, sharding: str | None) -> bool:
    """Whether so many GPUs can share a model in this way; None leaves the way open."""
    return sharding is None or (sharding == "none") == (gpus == 1)


def launch_conflicts(values: Mapping[str, Any]) -> dict[str, str]:
    """Launch rules between values that were given, with the remedy."""
    errors: dict[str, str] = {}
    tuning = values.get("tuning")
    if tuning == "full":
        for name in ("lora_r", "lora_alpha", "target_modules"):
            if name in values:
                errors[name] = "belongs to adapter tunings; leave it out or choose lora or qlora"
        if values.get("quantization", "none") != "none":
            errors["quantization"] = "full fine-tuning trains unquantised weights; choose qlora"
    if tuning == "lora" and values.get("quantization", "none") != "none":
        errors["quantization"] = "lora keeps the base model unquantised; choose qlora"
    if tuning == "qlora" and values.get("quantization", "bnb-4bit") != "bnb-4bit":
        errors["quantization"] = "qlora quantises with bnb-4bit; leave this out"
    if tuning == "qlora" and values.get("gpu_model") == "cpu":
        errors["gpu_model"] = "qlora needs a GPU; choose another GPU model or the tuning lora"
    if "epochs" in values and "max_steps" in values:
        errors["max_steps"] = "give epochs or max_steps, not both"
    gpus, nodes = values.get("number_gpus"), values.get("number_nodes")
    if gpus and nodes and gpus % nodes:
        errors["number_nodes"] = f"must divide number_gpus ({gpus})"
    if gpus and not shares_among(gpus, values.get("sharding")):
        errors["sharding"] = f"{SHARDING_RULE}; leave it out"
    return errors or _batch_conflict(values)


def _batch_conflict(values: Mapping[str, Any]) -> dict[str, str]:
    """Return an error if the batch parameters that were given contradict each other.

    The effective batch is per-device batch x accumulation x GPUs.
    """
    effective = values.get("effective_batch_size")
    parts = [values.get(n) for n in ("per_device_batch_size", "gradient_accumulation_steps", "number_gpus")]
    product = math.prod(part for part in parts if part)
    if effective and (effective % product or (None not in parts and effective != product)):
        return {
            "effective_batch_size": "must be per_device_batch_size x gradient_accumulation_steps"
            f" x number_gpus (the given ones make {product})"
        }
    return {}


_S, _D = Binds.SUBMIT, Binds.DISPATCH

# What is trained, and the rows of a step.
BASE: Mapping[str, Param] = {
    "tuning": Param(
        kind=str,
        binds=_S,
        default="lora",
        choices=("full", "lora", "qlora"),
        help="full trains all weights; lora and qlora train a small adapter, qlora on 4-bit weights.",
    ),
    "quantization": Param(
        kind=str,
        binds=_S,
        default="none",
        choices=("none", "bnb-4bit"),
        help="How the frozen base model is stored.",
    ),
    "precision": Param(
        kind=str,
        binds=_S,
        default="bfloat16",
        choices=("bfloat16", "float16", "float32"),
        help="Number format of weights and activations.",
    ),
    "tokens_per_sample": Param(
        kind=int,
        unit="tokens",
        binds=_S,
        default=2048,
        low=16,
        high=131_072,
        help="Maximum length of a sample; longer ones are truncated.",
    ),
    "effective_batch_size": Param(
        kind=int,
        unit="samples",
        binds=_S,
        default=16,
        low=1,
        high=65_536,
        help="Samples per optimiser step, over all GPUs.",
    ),
}
ADAPTER: Mapping[str, Param] = {
    "lora_r": Param(kind=int, binds=_S, default=16, low=1, high=1024, help="Rank of the adapter."),
    "lora_alpha": Param(kind=int, binds=_S, default=32, low=1, high=4096, help="Scale of the adapter."),
    "target_modules": Param(
        kind=str,
        binds=_S,
        default=ALL_LINEAR,
        choices=(ALL_LINEAR, ATTENTION),
        help="The layers that get an adapter; those of attention alone need less memory.",
    ),
}
OPTIMISER: Mapping[str, Param] = {
    "learning_rate": Param(
        kind=float,
        binds=_S,
        default=2e-4,
        low=1e-8,
        high=1.0,
        help="Peak learning rate; it warms up and then follows the schedule.",
    ),
    "lr_schedule": Param(
        kind=str,
        binds=_S,
        default="linear",
        choices=("linear", "cosine", "constant"),
        help="How the learning rate falls after its peak: linear and cosine to zero, constant not at all.",
        why="A linear fall to zero was as good as cosine or better on most tasks (Defazio et al. 2023).",
    ),
    "warmup_share": Param(
        kind=float,
        binds=_S,
        default=0.03,
        low=0.0,
        high=0.5,
        help="Share of the steps in which the learning rate rises to its peak.",
        why="A short warm-up, as QLoRA was trained with (Dettmers et al. 2023).",
    ),
    "weight_decay": Param(
        kind=float,
        binds=_S,
        default=0.0,
        low=0.0,
        high=1.0,
        help="How strongly weights are pulled towards zero; norms and biases are not.",
        why="None, as in transformers and TRL: a few passes move weights little.",
    ),
    "adam_beta2": Param(
        kind=float,
        binds=_S,
        default=0.999,
        low=0.9,
        high=0.9999,
        help="Decay of AdamW's mean of squared gradients; less forgets earlier steps sooner.",
        why="AdamW's own (Loshchilov and Hutter 2019).",
    ),
    "clip_norm": Param(
        kind=float,
        binds=_S,
        default=1.0,
        low=0.01,
        high=100.0,
        help="Longer gradients are cut to this L2 norm.",
        why="As in transformers; it tames single steps and leaves the others as they are.",
    ),
    "epochs": Param(
        kind=float, unit="passes", binds=_S, default=1.0, low=0.001, high=1000, help="Passes over the data."
    ),
    "max_steps": Param(
        kind=int, unit="steps", binds=_S, low=1, high=10_000_000, help="Optimiser steps, instead of epochs."
    ),
    "seed": Param(
        kind=int,
        binds=_S,
        default=42,
        low=0,
        high=2_147_483_647,
        help="Seed for shuffling and initialisation.",
    ),
}
# Where and how fast it runs.
PLACE: Mapping[str, Param] = {
    "gpu_model": Param(
        kind=str, binds=_D, help="A GPU model of the catalogue, or cpu for slots of CPU nodes."
    ),
    "number_gpus": Param(
        kind=int, unit="GPUs", binds=_D, default=1, low=1, high=1024, help="Total over all nodes."
    ),
    "number_nodes": Param(
        kind=int,
        unit="nodes",
        binds=_D,
        default=1,
        low=1,
        high=128,
        help="Nodes that the GPUs are spread over.",
    ),
    "per_device_batch_size": Param(
        kind=int,
        unit="samples",
        binds=_D,
        default=1,
        low=1,
        high=1024,
        help="Samples that each GPU processes at a time.",
    ),
    "gradient_accumulation_steps": Param(
        kind=int,
        unit="micro-batches",
        binds=_D,
        default=1,
        low=1,
        high=65_536,
        help="Micro-batches per optimiser step.",
    ),
    "gradient_checkpointing": Param(
        kind=bool,
        binds=_D,
        default=True,
        help="Recompute activations to save memory.",
        reasons={
            True: "Recomputing activations keeps the peak at {memory}.",
            False: "All activations fit into memory ({memory}), so none have to be recomputed.",
        },
    ),
    "sharding": Param(
        kind=str,
        binds=_D,
        choices=("none", "ddp", "fsdp"),
        help="How several GPUs share the model.",
        reasons={
            "none": "One GPU holds the whole model.",
            "ddp": "Each GPU holds a full copy, and only gradients are exchanged.",
            "fsdp": "The model is split across the GPUs, so each one needs less memory.",
        },
    ),
}

LOOP_CONSTANTS: Mapping[str, Constant] = {
    "optimizer": Constant("adamw", "The optimiser of all weights that learn."),
    "adam_beta1": Constant(0.9, "Decay of its mean of gradients."),
    "lora_dropout": Constant(0.0, "Adapters see all of their input."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """The parameters above as the training process takes them."""

    tuning: str
    precision: str
    tokens_per_sample: int
    effective_batch_size: int | None
    per_device_batch_size: int
    gradient_accumulation_steps: int
    learning_rate: float
    lr_schedule: str
    warmup_share: float
    weight_decay: float
    adam_beta2: float
    clip_norm: float
    epochs: float
    max_steps: int | None
    seed: int
    lora_r: int
    lora_alpha: int
    target_modules: str
    gradient_checkpointing: bool
    sharding: str | None
