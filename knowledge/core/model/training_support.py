"""The reach of what was measured: which models, GPUs, settings and sizes predictions may lean on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain import catalogue, config_space
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Config


@dataclass(frozen=True, slots=True)
class TrainingSupport:
    """The reach of the training rows; what lies beyond is marked as outside.

    `alone`: the model that is the only one of its GPU, by GPU.
    """

    models: frozenset[str]
    families: frozenset[str]
    gpus: frozenset[str]
    alone: Mapping[str, str]
    settings: frozenset[str]
    low: Mapping[str, float]
    high: Mapping[str, float]

    @classmethod
    def of(cls, configs: Sequence[Config], c: ConfigTable) -> TrainingSupport:
        """The reach of these rows."""
        ranges = _ranges(c)
        models_of: dict[str, set[str]] = {}
        for x in configs:
            models_of.setdefault(x.gpu_model, set()).add(config_space.model_key(x.model_name))
        return cls(
            models=frozenset(x.model_name for x in configs),
            families=frozenset(_family(x) for x in configs),
            gpus=frozenset(models_of),
            alone={gpu: min(models) for gpu, models in models_of.items() if len(models) == 1},
            settings=frozenset(_setting(x) for x in configs),
            low={name: float(values.min()) for name, values in ranges.items()},
            high={name: float(values.max()) for name, values in ranges.items()},
        )

    def unseen_gpu(self, configs: Sequence[Config]) -> Mask:
        """Rows whose GPU was never measured, or with one other model only: which of the two was slow?"""
        keys = {name: config_space.model_key(name) for name in {x.model_name for x in configs}}
        unseen = [
            x.gpu_model not in self.gpus
            or self.alone.get(x.gpu_model, keys[x.model_name]) != keys[x.model_name]
            for x in configs
        ]
        return np.array(unseen, dtype=bool)

    def unseen_model(self, configs: Sequence[Config]) -> Mask:
        """Rows whose model was never measured."""
        known = {
            name for name in {x.model_name for x in configs} if config_space.model_key(name) in self.models
        }
        return np.array([x.model_name not in known for x in configs], dtype=bool)

    def unseen_setting(self, configs: Sequence[Config]) -> Mask:
        """Rows whose way to train, checkpoint and share was never measured."""
        return np.array([_setting(x) not in self.settings for x in configs], dtype=bool)

    def outside(self, configs: Sequence[Config], c: ConfigTable) -> Mask:
        """Rows with an unseen family, GPU or setting, or with a size twice beyond what was measured."""
        new = [_family(x) not in self.families or x.gpu_model not in self.gpus for x in configs]
        names = np.array(new, dtype=bool) | self.unseen_setting(configs)
        for name, values in _ranges(c).items():
            names |= (values < self.low[name] - 1) | (values > self.high[name] + 1)
        return names


def _family(config: Config) -> str:
    return catalogue.model(config.model_name).architecture


def _setting(config: Config) -> str:
    checkpointing = config.gradient_checkpointing is not False
    shared = "ddp" if config.sharding == "ddp" else ""
    return f"{config.method} {checkpointing} {shared}"


def _ranges(c: ConfigTable) -> dict[str, Array]:
    return {
        "gpus": np.log2(c.gpus),
        "micro_tokens": np.log2(np.maximum(c.micro_tokens, 1)),
        "parameters": np.log2(c.parameters),
    }
