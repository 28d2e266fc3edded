"""CoTune: fill in where and how a job runs, one best configuration per bundle (GPU model, nodes, GPUs).

Source: Jansen et al., "Efficient Cluster Scheduling for Fine-tuning LLMs Using Historical Configuration
Data"; the search is our own (docs/knowledge.md). Only what binds at dispatch is free here, and of that only
what the user left open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain import catalogue, config_space, method_support
from knowledge.core.domain.arrays import Mask
from knowledge.core.domain.types import Config, Goal, GpuPool, Option
from knowledge.core.predict.base import MIN_P_VALID, BasePredictor, PredictionBatch, prediction
from knowledge.core.recommend import duration
from knowledge.core.recommend.candidates import Candidates, Rows, Sizes, best_of_each
from knowledge.core.recommend.submit_defaults import Request

ROOMY = 0.95  # fuller GPUs still run, but often several times slower: the allocator thrashes
SAME_RATE = 0.97  # rates this near to the best count as equal: take the one that needs less memory
HOPELESS = 0.05  # below this probability nothing is offered at all
RISKY_OPTIONS = 5
SHORTLIST = 3000  # candidates that the estimators score in a fifth of a second
LEVELS_A_DOUBLING = 2
LEVELS = 1000  # more than any memory in bytes has


def candidates(request: Request, bound: Mapping[str, Any]) -> Candidates:
    """Every configuration that keeps what is bound and fixed and breaks no launch rule."""
    return Candidates.of(
        (kind, pool, sizes)
        for pool in request.pools
        if _can_compute(pool, bound["precision"])
        for nodes, gpus in config_space.open_bundles(
            method_support.node_sizes(pool, bound["method"]), request.fixed, request.inventory.max_nodes
        )
        if (sizes := _sizes(bound, request.fixed, gpus))
        for kind in _kinds(request, bound, pool, nodes, gpus)
    )


def _sizes(bound: Mapping[str, Any], fixed: Mapping[str, Any], gpus: int) -> list[Sizes]:
    tokens = bound["tokens_per_sample"]
    return [(tokens, *pair) for pair in batches(bound.get("effective_batch_size"), fixed, gpus)]


def _can_compute(pool: GpuPool, precision: str) -> bool:
    """GPUs without bfloat16 units would emulate it; a CPU may."""
    gpu = catalogue.known_gpu(pool.gpu_model)
    return precision != "bfloat16" or gpu is None or gpu.bf16_flops is not None


def _kinds(
    request: Request, bound: Mapping[str, Any], pool: GpuPool, nodes: int, gpus: int
) -> Iterator[Config]:
    """The ways to run on one bundle, one sample at a time."""
    fixed = request.fixed
    for checkpointing in _open(fixed, "gradient_checkpointing", (True, False)):
        for sharding in _open(fixed, "sharding", _shardings(pool, gpus, bound)):
            yield Config(
                model_name=request.model_name,
                method=bound["method"],
                gpu_model=pool.gpu_model,
                number_gpus=gpus,
                number_nodes=nodes,
                tokens_per_sample=bound["tokens_per_sample"],
                per_device_batch_size=1,
                precision=bound["precision"],
                quantization=bound["quantization"],
                lora_r=bound.get("lora_r"),
                lora_alpha=bound.get("lora_alpha"),
                gradient_checkpointing=checkpointing,
                sharding=sharding,
                network=pool.network if nodes > 1 else "none",
                **config_space.OUR_TRAINER,
            )


def batches(effective: int | None, fixed: Mapping[str, Any], gpus: int) -> Iterator[tuple[int, int]]:
    """(per-device batch, accumulation) pairs whose product with the GPUs is the effective batch."""
    if effective is None or effective % gpus:
        return
    samples = effective // gpus
    for batch in config_space.per_device_batches(samples):
        accumulation = samples // batch
        if (
            fixed.get("per_device_batch_size", batch) == batch
            and fixed.get("gradient_accumulation_steps", accumulation) == accumulation
        ):
            yield batch, accumulation


def _open(fixed: Mapping[str, Any], name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (fixed[name],) if name in fixed else values


def _shardings(pool: GpuPool, gpus: int, bound: Mapping[str, Any]) -> tuple[str, ...]:
    if gpus == 1:
        return ("none",)
    sharded = config_space.can_shard(pool.gpu_model, bound["method"], bound["precision"])
    return ("ddp", "fsdp") if sharded else ("ddp",)


def options(
    request: Request,
    bound: Mapping[str, Any],
    predictor: BasePredictor,
    *,
    goal: Goal,
    startups: duration.Startups,
    less_memory_than: float | None = None,
) -> tuple[Option, ...]:
    """The best configuration of every bundle, best bundle first.

    Only configurations that run with a probability of 0.9; if there is none, the five likeliest. With
    `less_memory_than` (bytes of one GPU) only those predicted to need less.
    """
    everything = candidates(request.of_known_gpus(), bound)
    if not len(everything) or request.model is None:
        return ()
    found, c = shortlisted(everything, everything.columns(predictor.here, request.data), predictor)
    configs = found.configs()
    scores = predictor.score(configs, c)
    room = np.ones(len(found), dtype=bool) if less_memory_than is None else scores.memory < less_memory_than
    chosen = per_bundle(found, c, scores, room & (scores.p_valid >= MIN_P_VALID))
    if not chosen:
        chosen = likeliest(found, scores, room & (scores.p_valid >= HOPELESS))[:RISKY_OPTIONS]
    made = [
        duration.option(
            configs[row],
            prediction(scores, row),
            data=request.data,
            pool=found.pool(row),
            startup=duration.startup(request.model, found.pool(row).gpu_model, startups),
            epochs=bound.get("epochs"),
            max_steps=bound.get("max_steps"),
        )
        for row in chosen
    ]
    return tuple(sorted(made, key=lambda option: rank(option, goal)))


def shortlisted(
    found: Candidates, c: ConfigTable, predictor: BasePredictor
) -> tuple[Candidates, ConfigTable]:
    """The candidates worth scoring, with their columns: all of them, unless there are very many.

    Of many, those that fit by the memory prior, and of each bundle and level of memory the fastest by
    physics: which level is the last one that runs is for the estimators to say.
    """
    if len(found) <= SHORTLIST:
        return found, c
    rows = fitting(c)
    if len(rows) > SHORTLIST:
        rows = rows[_fastest_of_each_level(found.take(rows), c.take(rows), predictor)]
    return found.take(rows), c.take(rows)


def fitting(c: ConfigTable) -> Rows:
    """The rows that fit by the memory prior; if none does, those that miss by least."""
    share = cost_model.fits(c)
    rows = np.flatnonzero(share >= 1)
    return rows if len(rows) else np.argsort(-share, kind="stable")[:SHORTLIST]


def _fastest_of_each_level(found: Candidates, c: ConfigTable, predictor: BasePredictor) -> Mask:
    level = np.floor(LEVELS_A_DOUBLING * np.log2(cost_model.memory(c).total)).astype(np.intp)
    _, groups = np.unique(found.bundle() * LEVELS + level, return_inverse=True)
    share = max(1, SHORTLIST // (int(groups.max()) + 1))
    return best_of_each(groups, predictor.physics(c), share)


def per_bundle(found: Candidates, c: ConfigTable, scores: PredictionBatch, allowed: Mask) -> list[int]:
    """The row to take of each bundle: within 3 % of its best rate, the one with the smallest footprint.

    The smallest batch that loses no throughput is safer than the biggest that fits. Rows that leave some
    room are preferred where a bundle has any.
    """
    roomy = scores.memory <= ROOMY * c.memory
    return [
        _least_memory(found, scores, [row for row in some if roomy[row]] or some)
        for some in _of_each_bundle(found, allowed)
    ]


def likeliest(found: Candidates, scores: PredictionBatch, allowed: Mask) -> list[int]:
    """The row of each bundle that most probably runs, the likeliest bundle first; of equals the smallest."""

    def risk(row: int) -> tuple[float, float, float, str]:
        figures = -scores.p_valid[row], scores.memory[row], -scores.rate[row]
        return (*figures, config_space.config_hash(found.config(row)))

    return sorted((min(some, key=risk) for some in _of_each_bundle(found, allowed)), key=risk)


def _of_each_bundle(found: Candidates, allowed: Mask) -> Iterable[list[int]]:
    bundle = found.bundle()
    rows: dict[int, list[int]] = {}
    for row in np.flatnonzero(allowed):
        rows.setdefault(int(bundle[row]), []).append(int(row))
    return rows.values()


def _least_memory(found: Candidates, scores: PredictionBatch, rows: list[int]) -> int:
    best = max(scores.rate[row] for row in rows)
    near = [row for row in rows if scores.rate[row] >= SAME_RATE * best]
    least = min((scores.memory[row], -scores.rate[row]) for row in near)
    ties = [row for row in near if (scores.memory[row], -scores.rate[row]) == least]
    return min(ties, key=lambda row: config_space.config_hash(found.config(row))) if ties[1:] else ties[0]


def rank(option: Option, goal: Goal) -> tuple[float, int, float, str]:
    """Sort key: the goal, then fewer GPUs, higher p_valid, and the configuration's hash."""
    return option.score(goal), option.gpus, -option.p_valid, config_space.config_hash(option.config)


def needed_bytes(request: Request, bound: Mapping[str, Any]) -> float | None:
    """The least memory of one GPU with which any candidate would fit, margin included; None without any."""
    found = candidates(request.of_known_gpus(), bound)
    if not len(found) or request.model is None:
        return None
    return float(np.min(cost_model.MEMORY_MARGIN * cost_model.memory(found.columns()).total))
