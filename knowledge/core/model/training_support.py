"""The reach of the measurements.

It says which models, GPUs, settings and sizes predictions may rely on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.analytic.stack import is_ours, software_family
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Config
from knowledge.core.model.intervals import ENOUGH

# A run that fitted says something of runs that need up to so much more of the GPU.
STEP = 1.25
STEP_OF_SETTING = 2.0


@dataclass(frozen=True, slots=True)
class TrainingSupport:
    """The reach of the training rows; what lies beyond is marked as outside.

    `alone`: the model that is the only one of its GPU, by GPU. `reached`: of each model, GPU and setting the
    largest share of the GPU that a run needed, by physics. `software`: families with enough rows.
    """

    models: frozenset[str]
    families: frozenset[str]
    gpus: frozenset[str]
    alone: Mapping[str, str]
    settings: frozenset[str]
    low: Mapping[str, float]
    high: Mapping[str, float]
    reached: Mapping[str, float]
    software: frozenset[str]

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
            settings=frozenset(map(_setting, configs)),
            low={name: float(values.min()) for name, values in ranges.items()},
            high={name: float(values.max()) for name, values in ranges.items()},
            reached=_reached(configs, c),
            software=known_software(configs),
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

    def foreign(self, configs: Sequence[Config]) -> Mask:
        """Rows of software that history hardly has, shape (n,)."""
        return foreign(configs, self.software)

    def unseen_setting(self, configs: Sequence[Config]) -> Mask:
        """Rows whose way to train, checkpoint and share was never measured."""
        return np.array([_setting(x) not in self.settings for x in configs], dtype=bool)

    def beyond_reach(self, configs: Sequence[Config], c: ConfigTable) -> Mask:
        """Rows that need more of the GPU than any run of the model, GPU or setting.

        Runs with room to spare say nothing of where it ends.
        """
        reached = [min(self.reached.get(name, 0.0) for name in of_row) for of_row in _names(configs, c)]
        beyond: Mask = _share(c) > STEP * np.array(reached)
        return beyond

    def untried_setting(self, configs: Sequence[Config], c: ConfigTable) -> Mask:
        """Rows whose setting was never measured, or with far more room to spare."""
        reached = [self.reached.get(setting, 0.0) for _, _, setting in _names(configs, c)]
        untried: Mask = _share(c) > STEP_OF_SETTING * np.array(reached)
        return untried

    def outside(self, configs: Sequence[Config], c: ConfigTable) -> Mask:
        """Return the rows with an unseen family, GPU or setting, or an unusual size.

        A size is unusual if it is beyond the measured ones by a factor of two.
        """
        new_gpu = np.array([x.gpu_model not in self.gpus for x in configs], dtype=bool)
        found: Mask = ~c.family.among(self.families) | new_gpu | self.unseen_setting(configs)
        for name, values in _ranges(c).items():
            found |= (values < self.low[name] - 1) | (values > self.high[name] + 1)
        return found


def known_software(configs: Sequence[Config]) -> frozenset[str]:
    """The families of software of which history has enough rows."""
    families = Counter(map(software_family, configs))
    return frozenset(family for family, rows in families.items() if rows >= ENOUGH)


def foreign(configs: Sequence[Config], known: frozenset[str]) -> Mask:
    """Rows of software other than our trainer and the known families, shape (n,)."""
    return np.array([not (is_ours(x) or software_family(x) in known) for x in configs], dtype=bool)


def _share(c: ConfigTable) -> Array:
    """A run's share of the GPU's memory by the prior, which no history moves."""
    share: Array = cost_model.memory(c).total / c.memory
    return share


def _names(configs: Sequence[Config], c: ConfigTable) -> list[tuple[str, str, str]]:
    """Model, GPU and setting of each row, as keys of what was reached."""
    keys = zip(c.model_key, c.gpu_key, map(_setting, configs), strict=True)
    return [(f"model {model}", f"GPU {gpu}", f"setting {setting}") for model, gpu, setting in keys]


def _reached(configs: Sequence[Config], c: ConfigTable) -> dict[str, float]:
    found: dict[str, float] = {}
    for names, share in zip(_names(configs, c), _share(c).tolist(), strict=True):
        found |= {name: max(share, found.get(name, 0.0)) for name in names}
    return found


def _setting(config: Config) -> str:
    checkpointing = config.gradient_checkpointing is not False
    shared = "ddp" if config.sharding == "ddp" else ""
    others = [name for name in config_space.OTHER_SETTINGS if not _is_usual(config, name)]
    unusual = "".join(f" {name}={getattr(config, name)}" for name in others)
    return f"{config.tuning} {checkpointing} {shared}{unusual}"


def _is_usual(config: Config, name: str) -> bool:
    return getattr(config, name) in (None, config_space.PARAMS[name].default)


def _ranges(c: ConfigTable) -> dict[str, Array]:
    return {
        "gpus": np.log2(c.gpus),
        "micro_tokens": np.log2(np.maximum(c.micro_tokens, 1)),
        "parameters": np.log2(c.parameters),
    }
