"""What history teaches on top of the prior: rates, memory and validity of one kind of hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from knowledge.core import catalog, estimators, features, prior, space
from knowledge.core.columns import Array, Columns, Mask, columns
from knowledge.core.estimators import Calibration, Ensemble
from knowledge.core.intervals import Widths
from knowledge.core.rows import Row
from knowledge.core.types import Config

ENOUGH_ROWS = 40  # of the kind (GPU, cpu); below it the prior answers


def kind_of(config: Config) -> str:
    """GPU and CPU rows never teach each other."""
    return "cpu" if config.gpu_model == "cpu" else "gpu"


@dataclass(frozen=True, slots=True)
class Residual:
    """A regressor of ln(measured / prior) with conformal widths, for known and for unseen models."""

    ensemble: Ensemble
    widths: Widths
    unseen_width: float


@dataclass(frozen=True, slots=True)
class Validity:
    """A calibrated classifier of "does it run"."""

    ensemble: Ensemble
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Seen:
    """The reach of the training rows; what lies beyond is marked as outside."""

    models: frozenset[str]
    families: frozenset[str]
    gpus: frozenset[str]
    settings: frozenset[str]
    low: Mapping[str, float]
    high: Mapping[str, float]

    @classmethod
    def of(cls, configs: Sequence[Config], c: Columns) -> Seen:
        """The reach of these rows."""
        ranges = _ranges(c)
        return cls(
            models=frozenset(x.model_name for x in configs),
            families=frozenset(_family(x) for x in configs),
            gpus=frozenset(x.gpu_model for x in configs),
            settings=frozenset(_setting(x) for x in configs),
            low={name: float(values.min()) for name, values in ranges.items()},
            high={name: float(values.max()) for name, values in ranges.items()},
        )

    def unseen_gpu(self, configs: Sequence[Config]) -> Mask:
        """Rows whose GPU was never measured."""
        return np.array([x.gpu_model not in self.gpus for x in configs], dtype=bool)

    def unseen_model(self, configs: Sequence[Config]) -> Mask:
        """Rows whose model or GPU was never measured."""
        canonical = [space.canonical(x) for x in _distinct(configs)]
        known = {x for x, k in zip(_distinct(configs), canonical, strict=True) if self._knows(k)}
        return np.array([x not in known for x in configs], dtype=bool)

    def outside(self, configs: Sequence[Config], c: Columns) -> Mask:
        """Rows with an unseen family, GPU or setting, or with a size twice beyond what was measured."""
        names = np.array(
            [
                _family(x) not in self.families
                or x.gpu_model not in self.gpus
                or _setting(x) not in self.settings
                for x in configs
            ],
            dtype=bool,
        )
        for name, values in _ranges(c).items():
            names |= (values < self.low[name] - 1) | (values > self.high[name] + 1)
        return names

    def _knows(self, config: Config) -> bool:
        return config.model_name in self.models and config.gpu_model in self.gpus


def _distinct(configs: Sequence[Config]) -> list[Config]:
    return list(dict.fromkeys(configs))


def _family(config: Config) -> str:
    return catalog.model(config.model_name).architecture


def _setting(config: Config) -> str:
    checkpointing = config.gradient_checkpointing is not False
    shared = "ddp" if config.sharding == "ddp" else ""
    return f"{config.method} {checkpointing} {shared}"


def _ranges(c: Columns) -> dict[str, Array]:
    return {
        "gpus": np.log2(c.gpus),
        "micro_tokens": np.log2(np.maximum(c.micro_tokens, 1)),
        "parameters": np.log2(c.parameters),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """All that was learnt from the rows of one kind."""

    rows: int
    vocabulary: dict[str, dict[str, float]]
    rate: Residual
    memory: Residual | None
    validity: Validity | None
    seen: Seen


def learn(rows: Sequence[Row], kind: str) -> Knowledge | None:
    """Everything that the rows of the kind teach; None with too few measured ones."""
    mine = [row for row in rows if kind_of(row.config) == kind and row.known]
    measured = [row for row in mine if row.measured]
    if len(measured) < ENOUGH_ROWS:
        return None
    words = features.vocabulary([row.config for row in measured])
    with estimators.one_thread():
        return Knowledge(
            rows=len(measured),
            vocabulary=words,
            rate=_learn_rate(measured, words),
            memory=_learn_memory(mine, words),
            validity=_learn_validity(mine),
            seen=Seen.of([row.config for row in measured], _columns(measured)),
        )


def _columns(rows: Sequence[Row]) -> Columns:
    return columns([row.config for row in rows], None, [row.padded_tokens for row in rows])


def _learn_rate(rows: Sequence[Row], words: dict[str, dict[str, float]]) -> Residual:
    c = _columns(rows)
    target = np.log([row.tokens_per_second or 1.0 for row in rows]) - np.log(prior.throughput(c))
    return _learn_residual(rows, features.matrix([row.config for row in rows], c, words), target)


def _learn_memory(rows: Sequence[Row], words: dict[str, dict[str, float]]) -> Residual | None:
    known = [row for row in rows if row.learn and row.status == "ok" and row.peak_memory_fraction]
    if len(known) < ENOUGH_ROWS:
        return None
    c = _columns(known)
    measured = np.array([row.peak_memory_fraction for row in known], dtype=float)
    target = np.log(measured) - np.log(prior.memory(c).total / c.memory)
    return _learn_residual(known, features.matrix([row.config for row in known], c, words), target)


def _learn_residual(rows: Sequence[Row], X: Array, target: Array) -> Residual:
    configs = [row.config for row in rows]
    by_config = _residuals(estimators.regressors, X, target, [space.config_hash(x) for x in configs])
    by_model = _residuals(estimators.quick_regressors, X, target, [x.model_name for x in configs])
    kinds = [interval_kind(x) for x in configs]
    widths = Widths.of(by_config, kinds)
    unseen = max(Widths.of(by_model, kinds).pooled, widths.pooled)
    if not np.isfinite(unseen):  # a single model was measured: what another one does is the prior's guess
        unseen = prior.Z_80 * prior.TAU
    return Residual(Ensemble(estimators.regressors).fit(X, target), widths, unseen)


def _residuals(make: Callable[[], list[Any]], X: Array, target: Array, groups: Sequence[str]) -> Array:
    """Absolute out-of-fold residuals; infinite, that is unknown, where the rows form a single group."""
    found = np.abs(target - estimators.out_of_fold(make, X, target, groups))
    return np.where(np.isfinite(found), found, np.inf)


def interval_kind(config: Config) -> str:
    """The table that an interval comes from."""
    return f"{config.method}|{config.gpu_model}"


def _learn_validity(rows: Sequence[Row]) -> Validity | None:
    """A classifier from sources that publish their failures; refused rows are the rules' business."""
    known = [row for row in rows if row.learn_validity and row.status in ("ok", "oom", "failed")]
    happened = np.array([row.status == "ok" for row in known], dtype=int)
    if len(known) < ENOUGH_ROWS or min(happened.sum(), len(known) - happened.sum()) < estimators.FOLDS:
        return None
    configs = [row.config for row in known]
    X = features.validity_matrix(configs, _columns(known))
    groups = [space.config_hash(x) for x in configs]
    raw = estimators.out_of_fold(estimators.classifiers, X, happened, groups)
    if not np.isfinite(raw).all():
        return None
    return Validity(Ensemble(estimators.classifiers).fit(X, happened), Calibration().fit(raw, happened))
