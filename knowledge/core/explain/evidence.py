"""How near a measured execution is to a configuration."""

from __future__ import annotations

import math

from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

SAME_SIZE = 1.6  # models within this factor count as related


def related_models(name: str, catalogue: Catalogue) -> list[str]:
    """Return the model itself and those of nearly its size, nearest first.

    An unknown model is returned alone.
    """
    model = catalogue.known_model(name)
    if model is None:
        return [name]
    apart = {
        other.model_name: abs(math.log(other.parameters / model.parameters))
        for other in catalogue.shipped_models
    }
    near = sorted((gap, other) for other, gap in apart.items() if gap <= math.log(SAME_SIZE))
    return list(dict.fromkeys([model.model_name, *(other for _, other in near)]))


def distance(wanted: Config, measured: Config) -> float:
    """Return the distance between two configurations.

    It is 0 for the same configuration, and grows by about 1 for each doubling of a size or each
    setting that differs.
    """
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
        *((getattr(wanted, name), getattr(measured, name)) for name in config_space.SETTINGS),
    ]
    different = sum(bool(a != b) for a, b in settings if b is not None)
    kind = 4.0 if (wanted.gpu_model == "cpu") != (measured.gpu_model == "cpu") else 0.0
    return doublings + different + kind
