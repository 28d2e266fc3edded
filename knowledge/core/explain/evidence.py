"""How near a measured execution is to a configuration."""

from __future__ import annotations

import math

from knowledge.core.domain import catalogue
from knowledge.core.domain.types import Config

SAME_SIZE = 1.6  # models within this factor count as related


def related_models(name: str) -> list[str]:
    """The model itself and those of nearly its size, nearest first; just itself if it is unknown."""
    model = catalogue.known_model(name)
    if model is None:
        return [name]
    apart = {
        other: abs(math.log(catalogue.model(other).parameters / model.parameters))
        for other in catalogue.model_names()
    }
    near = sorted((gap, other) for other, gap in apart.items() if gap <= math.log(SAME_SIZE))
    return list(dict.fromkeys([model.model_name, *(other for _, other in near)]))


def distance(wanted: Config, measured: Config) -> float:
    """0 for the same configuration; about 1 for each doubling of a size or each setting that differs."""
    sizes = [
        (wanted.number_gpus, measured.number_gpus),
        (wanted.tokens_per_sample, measured.tokens_per_sample),
        (wanted.per_device_batch_size, measured.per_device_batch_size),
    ]
    doublings = sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in sizes)
    settings = [
        (wanted.gpu_model, measured.gpu_model),
        (wanted.number_nodes, measured.number_nodes),
        (wanted.model_name, measured.model_name),
        (wanted.gradient_checkpointing, measured.gradient_checkpointing),
        (wanted.sharding, measured.sharding),
    ]
    different = sum(a != b for a, b in settings if b is not None)
    kind = 4.0 if (wanted.gpu_model == "cpu") != (measured.gpu_model == "cpu") else 0.0
    return doublings + different + kind
