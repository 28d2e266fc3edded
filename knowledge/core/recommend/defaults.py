"""Stated defaults where nothing can be predicted.

The model is unknown, or a recommendation failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.core.domain import config_space, workload
from knowledge.core.domain.types import Config, GpuPool, Interval, Option, Source
from knowledge.core.recommend.search_space import enumerated
from knowledge.core.recommend.submit_defaults import Request

UNKNOWN = Interval(0.0)  # with Source.DEFAULT: nothing is predicted
UNKNOWN_P_VALID = 0.5


def default_options(request: Request, bound: Mapping[str, Any]) -> tuple[Option, ...]:
    """Return one option per bundle, fewest GPUs first.

    It takes one sample at a time with checkpointing, or the values that are fixed.
    """
    found = []
    seen = set()
    candidates = enumerated(request, bound)
    for row, (config, bundle) in enumerate(zip(candidates.configs(), candidates.bundle(), strict=True)):
        if bundle not in seen and _is_default(config, request):
            seen.add(bundle)
            found.append(_option(config, candidates.pool(row), request, bound))
    return tuple(sorted(found, key=lambda option: (option.gpus, option.place)))


def _is_default(config: Config, request: Request) -> bool:
    """Return whether the sharding of a candidate is the default one.

    Candidates come with the smallest batch and checkpointing first; sharding is the one open
    choice.
    """
    may_shard = config_space.can_shard(config.gpu_model, config.tuning, config.precision)
    return "sharding" in request.fixed or config.sharding in ("none", "fsdp") or not may_shard


def _option(config: Config, pool: GpuPool, request: Request, bound: Mapping[str, Any]) -> Option:
    return Option(
        config=config,
        p_valid=UNKNOWN_P_VALID,
        tokens_per_second=UNKNOWN,
        peak_memory_bytes=UNKNOWN,
        startup_s=0.0,
        duration_s=UNKNOWN,
        cost=UNKNOWN,
        source=Source.DEFAULT,
        outside=True,
        steps=workload.steps(
            request.data, config.effective_batch_size, bound.get("epochs"), bound.get("max_steps")
        ),
        padded_tokens=workload.padded_length(
            request.data,
            config.tokens_per_sample,
            config.per_device_batch_size,
            config.effective_batch_size,
        )
        or None,
        price_per_gpu_hour=pool.price_per_gpu_hour,
        gpu_memory_bytes=pool.memory_bytes,
    )
