"""Single changes of a configuration, and how much memory each would save."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from knowledge.core.analytic.config_table import DEFAULT_LORA_R
from knowledge.core.domain import config_space, tuning_support
from knowledge.core.domain.adapted_layers import ALL_LINEAR, ATTENTION
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, GpuPool, MemorySaving, Option
from knowledge.core.explain.infeasible import SHORTEST
from knowledge.core.model.fitted_model import FittedModel
from knowledge.core.predict.memory_parts import SMALLEST, scaled_parts

Change = Mapping[str, Any]  # new values by field


def memory_savings(
    option: Option, knowledge: Mapping[str, FittedModel], catalogue: Catalogue, pools: Sequence[GpuPool]
) -> tuple[MemorySaving, ...]:
    """Return what single changes would save on each GPU, the largest first.

    Both peaks are sums of the same parts (`scaled_parts`), so savings agree with where the memory goes.
    Changes that break a launch rule, or save next to nothing, are left out.
    """
    changes = [
        change
        for change in _changes(option.config)
        if config_space.refused(replace(option.config, **change), catalogue) is None
        and not _unsupported(change, option.config, pools)
    ]
    others = [replace(option.config, **change) for change in changes]
    peaks = np.sum(list(scaled_parts(option, others, knowledge, catalogue).values()), axis=0)
    peak, *left = map(float, peaks)
    found = [
        MemorySaving(changes=_before_and_after(option.config, change), saved_bytes=peak - less)
        for change, less in zip(changes, left, strict=True)
        if peak - less > SMALLEST * peak
    ]
    return tuple(sorted(found, key=lambda saving: -saving.saved_bytes))


def _changes(config: Config) -> Iterator[Change]:
    """Yield the changes worth trying; the effective batch stays, and the GPUs."""
    if config.gradient_checkpointing is False:
        yield {"gradient_checkpointing": True}
    yield from _smaller_batch(config)
    if config.tokens_per_sample >= 2 * SHORTEST:
        yield {"tokens_per_sample": config.tokens_per_sample // 2}
    if config.tuning == "full":
        yield {"tuning": "lora"}
    if config.tuning == "lora":
        yield {"tuning": "qlora", "quantization": "bnb-4bit"}
    rank = config.lora_r or DEFAULT_LORA_R
    if config.tuning in config_space.ADAPTERS and rank > 1:
        yield {"lora_r": rank // 2}
    if config.tuning in config_space.ADAPTERS and config.target_modules == ALL_LINEAR:
        yield {"target_modules": ATTENTION}
    shards = config.number_gpus > 1 and config.sharding in ("none", "ddp")
    if shards and config_space.can_shard(config.gpu_model, config.tuning, config.precision):
        yield {"sharding": "fsdp"}


def _smaller_batch(config: Config) -> Iterator[Change]:
    """Half of the micro-batch or less, whatever divides the samples of a step."""
    batch, steps = config.per_device_batch_size, config.gradient_accumulation_steps
    smaller = [size for size in config_space.per_device_batches(batch * steps) if 2 * size <= batch]
    if smaller:
        yield {
            "per_device_batch_size": smaller[-1],
            "gradient_accumulation_steps": batch * steps // smaller[-1],
        }


def _unsupported(change: Change, config: Config, pools: Sequence[GpuPool]) -> str:
    """Why no GPU of the model can train by the changed tuning; empty if one can."""
    same = [pool for pool in pools if pool.gpu_model == config.gpu_model]
    return tuning_support.explain_unsupported(same, change["tuning"]) if "tuning" in change else ""


def _before_and_after(config: Config, change: Change) -> dict[str, tuple[Any, Any]]:
    """(from, to) by parameter."""
    before = {"lora_r": config.lora_r or DEFAULT_LORA_R}
    return {
        name: (before.get(name, getattr(config, name)), value)
        for name, value in change.items()
        if name in config_space.PARAMS
    }
