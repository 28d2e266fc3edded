"""CoTune: fill in where and how a job runs, one best configuration per bundle (GPU model, nodes, GPUs).

Source: Jansen et al., "Efficient Cluster Scheduling for Fine-tuning LLMs Using Historical Configuration
Data"; the search is our own (docs/knowledge.md). Only what binds at dispatch is free here, and of that only
what the user left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from knowledge.core import catalog, forecast, prior, space, workload
from knowledge.core.columns import Mask, columns
from knowledge.core.predictor import MIN_P_VALID, Scorer, Scores, prediction
from knowledge.core.settle import Request
from knowledge.core.types import Config, Goal, Option, Pool

ROOMY = 0.95  # fuller GPUs still run, but often several times slower: the allocator thrashes
SAME_RATE = 0.97  # rates this near to the best count as equal: take the one that needs less memory
HOPELESS = 0.05  # below this probability nothing is offered at all
RISKY_OPTIONS = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration and the pool it would run on."""

    config: Config
    pool: Pool


def candidates(request: Request, bound: Mapping[str, Any]) -> list[Candidate]:
    """Every configuration that keeps what is bound and fixed and breaks no launch rule."""
    return [
        Candidate(config, pool)
        for pool in request.pools
        if _can_compute(pool, bound["precision"])
        for nodes, gpus in space.open_bundles(pool.node_sizes, request.fixed, request.inventory.max_nodes)
        for config in _on_bundle(request, bound, pool, nodes, gpus)
        if space.refused(config) is None
    ]


def _can_compute(pool: Pool, precision: str) -> bool:
    """GPUs without bfloat16 units would emulate it; a CPU may."""
    gpu = catalog.known_gpu(pool.gpu_model)
    return precision != "bfloat16" or gpu is None or gpu.bf16_flops is not None


def _on_bundle(
    request: Request, bound: Mapping[str, Any], pool: Pool, nodes: int, gpus: int
) -> Iterator[Config]:
    fixed = request.fixed
    for batch, accumulation in batches(bound.get("effective_batch_size"), fixed, gpus):
        for checkpointing in _open(fixed, "gradient_checkpointing", (True, False)):
            for sharding in _open(fixed, "sharding", _shardings(pool, gpus, bound)):
                yield Config(
                    model_name=request.model_name,
                    method=bound["method"],
                    gpu_model=pool.gpu_model,
                    number_gpus=gpus,
                    number_nodes=nodes,
                    tokens_per_sample=bound["tokens_per_sample"],
                    per_device_batch_size=batch,
                    gradient_accumulation_steps=accumulation,
                    precision=bound["precision"],
                    quantization=bound["quantization"],
                    lora_r=bound.get("lora_r"),
                    lora_alpha=bound.get("lora_alpha"),
                    gradient_checkpointing=checkpointing,
                    sharding=sharding,
                    network=pool.network if nodes > 1 else "none",
                )


def batches(effective: int | None, fixed: Mapping[str, Any], gpus: int) -> Iterator[tuple[int, int]]:
    """(per-device batch, accumulation) pairs whose product with the GPUs is the effective batch."""
    if effective is None or effective % gpus:
        return
    samples = effective // gpus
    for batch in space.per_device_batches(samples):
        accumulation = samples // batch
        if (
            fixed.get("per_device_batch_size", batch) == batch
            and fixed.get("gradient_accumulation_steps", accumulation) == accumulation
        ):
            yield batch, accumulation


def _open(fixed: Mapping[str, Any], name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (fixed[name],) if name in fixed else values


def _shardings(pool: Pool, gpus: int, bound: Mapping[str, Any]) -> tuple[str, ...]:
    """What our trainer can do: fsdp needs GPUs, unquantised weights, and no loss scaling."""
    if gpus == 1:
        return ("none",)
    whole = pool.gpu_model == "cpu" or bound["method"] == "qlora" or bound["precision"] == "float16"
    return ("ddp",) if whole else ("ddp", "fsdp")


def options(
    request: Request,
    bound: Mapping[str, Any],
    predictor: Scorer,
    *,
    goal: Goal,
    startups: forecast.Startups,
    less_memory_than: float | None = None,
) -> tuple[Option, ...]:
    """The best configuration of every bundle, best bundle first.

    Only configurations that run with a probability of 0.9; if there is none, the five likeliest. With
    `less_memory_than` (bytes of one GPU) only those predicted to need less.
    """
    found = candidates(request.of_known_gpus(), bound)
    if not found or request.model is None:
        return ()
    configs = [candidate.config for candidate in found]
    padded = _padded(request, configs)
    c = columns(configs, predictor.here, padded)
    scores = predictor.score(configs, c)
    roomy = scores.memory <= ROOMY * c.memory
    room = np.ones(len(found), dtype=bool) if less_memory_than is None else scores.memory < less_memory_than
    chosen = _per_bundle(configs, scores, room & (scores.p_valid >= MIN_P_VALID), roomy)
    if not chosen:
        likely = _per_bundle(configs, scores, room & (scores.p_valid >= HOPELESS), roomy)
        chosen = sorted(likely, key=lambda row: -scores.p_valid[row])[:RISKY_OPTIONS]
    made = [
        forecast.option(
            configs[row],
            prediction(scores, row),
            data=request.data,
            pool=found[row].pool,
            startup=forecast.startup_s(request.model, found[row].pool.gpu_model, startups),
            epochs=bound.get("epochs"),
            max_steps=bound.get("max_steps"),
        )
        for row in chosen
    ]
    return tuple(sorted(made, key=lambda option: rank(option, goal)))


def _padded(request: Request, configs: list[Config]) -> list[float | None]:
    """Processed tokens per sample of each configuration; they depend on the micro-batch alone."""
    lengths = {
        (c.tokens_per_sample, c.per_device_batch_size): workload.padded_length(
            request.data, c.tokens_per_sample, c.per_device_batch_size
        )
        for c in configs
    }
    return [lengths[c.tokens_per_sample, c.per_device_batch_size] or None for c in configs]


def _per_bundle(configs: list[Config], scores: Scores, allowed: Mask, roomy: Mask) -> list[int]:
    """The row to take of each bundle: within 3 % of its best rate, the one with the smallest footprint.

    The smallest batch that loses no throughput is safer than the biggest that fits. Rows that leave some
    room are preferred where a bundle has any.
    """
    rows: dict[tuple[str, int, int], list[int]] = {}
    for row in np.flatnonzero(allowed):
        config = configs[row]
        rows.setdefault((config.gpu_model, config.number_nodes, config.number_gpus), []).append(int(row))
    return [
        _least_memory(configs, scores, [row for row in bundle if roomy[row]] or bundle)
        for bundle in rows.values()
    ]


def _least_memory(configs: list[Config], scores: Scores, rows: list[int]) -> int:
    best = max(scores.rate[row] for row in rows)
    near = [row for row in rows if scores.rate[row] >= SAME_RATE * best]
    return min(near, key=lambda row: (scores.memory[row], -scores.rate[row], space.config_hash(configs[row])))


def rank(option: Option, goal: Goal) -> tuple[float, int, float, str]:
    """Sort key: the goal, then fewer GPUs, higher p_valid, and the configuration's hash."""
    return option.score(goal), option.gpus, -option.p_valid, space.config_hash(option.config)


def needed_bytes(request: Request, bound: Mapping[str, Any]) -> float | None:
    """The least memory of one GPU with which any candidate would fit, margin included; None without any."""
    found = candidates(request.of_known_gpus(), bound)
    if not found or request.model is None:
        return None
    c = columns([candidate.config for candidate in found], None, None)
    return float(np.min(prior.MEMORY_MARGIN * prior.memory(c).total))
