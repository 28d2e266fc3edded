"""Which configurations would teach most about a GPU: where the predictor is least certain, spread widely."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from knowledge.core import space
from knowledge.core.columns import Array, Columns, columns
from knowledge.core.predictor import Scorer
from knowledge.core.step_time import step_tokens
from knowledge.core.types import Config, Pool

METHODS = ("lora", "full", "qlora")
LENGTHS = (128, 256, 512, 1024, 2048)
BATCHES = (1, 2, 4, 8, 16)
HOPELESS = 0.3  # what probably runs out of memory teaches less than its time is worth
NEAR_EDGE = 0.5  # worth of a doubtful fit, in units of ln(rate)


def candidates(models: Sequence[str], pool: Pool) -> list[Config]:
    """Short runs on one GPU of the pool, over models, methods, lengths, batches and checkpointing."""
    cpu = pool.gpu_model == "cpu"
    found = [
        Config(
            model_name=model,
            method=method,
            gpu_model=pool.gpu_model,
            number_gpus=1,
            tokens_per_sample=length,
            per_device_batch_size=batch,
            precision="float32" if cpu else "bfloat16",
            quantization="bnb-4bit" if method == "qlora" else "none",
            lora_r=None if method == "full" else 16,
            lora_alpha=None if method == "full" else 32,
            optimizer_state=space.OPTIMIZER_STATE,
            gradient_checkpointing=checkpointing,
            sharding="none",
            network="none",
        )
        for model, method, length, batch, checkpointing in product(
            models, METHODS, LENGTHS, BATCHES, (True, False)
        )
    ]
    return [config for config in found if space.refused(config) is None]


def choose(
    configs: Sequence[Config], predictor: Scorer, count: int, longest_s: float = np.inf
) -> list[Config]:
    """The configurations to run, most informative first; those whose step takes over `longest_s` never.

    Each time the one with the largest product of uncertainty (half-width of ln θ, more near the edge of
    memory) and distance to those chosen before.
    """
    if not configs:
        return []
    c = columns(configs, predictor.here)
    scores = predictor.score(configs, c)
    width = np.log(scores.rate_high / scores.rate_low) / 2
    worth = np.where(np.isfinite(width), width, np.nanmax(width, initial=1.0, where=np.isfinite(width)))
    worth = worth + NEAR_EDGE * 4 * scores.p_valid * (1 - scores.p_valid)
    too_long = step_tokens(c) / scores.rate > longest_s
    worth = np.where((scores.p_valid < HOPELESS) | too_long, 0.0, worth)
    places = _places(configs, c)
    nearest = np.full(len(configs), 4.0)
    chosen: list[int] = []
    while len(chosen) < count and (worth * nearest).max() > 0:
        row = int(np.argmax(worth * nearest))
        chosen.append(row)
        nearest = np.minimum(nearest, np.abs(places - places[row]).sum(axis=1))
    return [configs[row] for row in chosen]


def _places(configs: Sequence[Config], c: Columns) -> Array:
    """Where configurations lie, in doublings; each setting that differs counts as one. Shape (n, k)."""
    methods = np.array([[config.method == method for method in METHODS] for config in configs], dtype=float)
    sizes = [np.log2(c.parameters), np.log2(c.tokens), np.log2(c.batch), c.checkpointing.astype(float)]
    return np.column_stack([*sizes, methods / 2])
