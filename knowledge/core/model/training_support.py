"""The reach of the measurements.

It says which models, GPUs, settings and sizes predictions may rely on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain import config_space
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
        for x, model in zip(configs, c.model_key, strict=True):
            models_of.setdefault(x.gpu_model, set()).add(model)
        return cls(
            models=frozenset(x.model_name for x in configs),
            families=frozenset(c.family),
            gpus=frozenset(models_of),
            alone={gpu: min(models) for gpu, models in models_of.items() if len(models) == 1},
            settings=frozenset(_setting(x) for x in configs),
            low={name: float(values.min()) for name, values in ranges.items()},
            high={name: float(values.max()) for name, values in ranges.items()},
        )

    def unseen_gpu(self, configs: Sequence[Config], c: ConfigTable) -> Mask:
        """Return the rows whose GPU was never measured, or with one other model only.

        In the second case it is unclear which of the two was slow.
        """
        unseen = [
            x.gpu_model not in self.gpus or self.alone.get(x.gpu_model, model) != model
            for x, model in zip(configs, c.model_key, strict=True)
        ]
        return np.array(unseen, dtype=bool)

    def unseen_model(self, c: ConfigTable) -> Mask:
        """Rows whose model was never measured."""
        return ~c.model_key.among(self.models)

    def unseen_setting(self, configs: Sequence[Config]) -> Mask:
        """Rows whose way to train, checkpoint and share was never measured."""
        return np.array([_setting(x) not in self.settings for x in configs], dtype=bool)

    def outside(self, configs: Sequence[Config], c: ConfigTable) -> Mask:
        """Return the rows with an unseen family, GPU or setting, or an unusual size.

        A size is unusual if it is beyond the measured ones by a factor of two.
        """
        new_gpu = np.array([x.gpu_model not in self.gpus for x in configs], dtype=bool)
        found: Mask = ~c.family.among(self.families) | new_gpu | self.unseen_setting(configs)
        for name, values in _ranges(c).items():
            found |= (values < self.low[name] - 1) | (values > self.high[name] + 1)
        return found


def _setting(config: Config) -> str:
    checkpointing = config.gradient_checkpointing is not False
    shared = "ddp" if config.sharding == "ddp" else ""
    others = [name for name in config_space.OTHER_SETTINGS if not _is_usual(config, name)]
    unusual = "".join(f" {name}={getattr(config, name)}" for name in others)
    return f"{config.method} {checkpointing} {shared}{unusual}"


def _is_usual(config: Config, name: str) -> bool:
    return getattr(config, name) in (None, config_space.PARAMS[name].default)


def _ranges(c: ConfigTable) -> dict[str, Array]:
    return {
        "gpus": np.log2(c.gpus),
        "micro_tokens": np.log2(np.maximum(c.micro_tokens, 1)),
        "parameters": np.log2(c.parameters),
    }
