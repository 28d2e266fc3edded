"""A regressor of rates or peaks.

It multiplies physics by what trees learnt of its error, with conformal intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.data import splits
from knowledge.core.data.splits import Dataset, Fold
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Config
from knowledge.core.model.estimators import QUICK_TREES, TREES, Forest
from knowledge.core.model.intervals import ENOUGH, Widths, quantile

ENOUGH_CONFIGS = 10  # of a (tuning, GPU) before it gets intervals of its own
ENOUGH_FOLDS = 4  # trees that know two or three GPUs, or models, say nothing of another: physics alone does


class AnalyticModel(Protocol):
    """A formula with fitted weights.

    Its value, and the part of it that a measurement shows, have n rows.
    """

    weights_: Array

    def fit(self, c: ConfigTable, measured: Array, groups: Sequence[str]) -> AnalyticModel: ...

    def value(self, c: ConfigTable) -> Array: ...

    def observed(self, c: ConfigTable) -> Array: ...

    def features(self, c: ConfigTable) -> Array: ...


class Regressor:
    """Predicts a positive quantity.

    For unseen models or GPUs physics answers alone where few are known.

    After `fit`: `physics_`, `forest_` and `widths_` (of ln, known models); by GPU `runs_` and
    `apart_`; by `model` and `gpu` `unseen_widths_`, and `believed_`, whether the trees are believed
    for unseen ones.
    """

    def __init__(self, physics: type[AnalyticModel]) -> None:
        self.physics = physics

    def fit(self, data: Dataset) -> Regressor:
        """data: X with NaN for unknown, and positive values."""
        configs = data.configs
        self._fit(data, TREES)
        errors = self._errors(data, splits.grouped(data.hashes))
        self.widths_ = Widths.of(errors, _varied_kinds(data), [x.gpu_model for x in configs])
        self.runs_ = dict(Counter(x.gpu_model for x in configs))
        self.apart_ = self._apart(data)
        self.believed_, self.unseen_widths_ = {}, {}
        # A GPU with a handful of runs is predicted from the others, so the others say how well that goes.
        known = data.take(np.flatnonzero(~self.scarce(configs)))
        models, gpus = list(splits.by_model(configs)), list(splits.by_gpu(known.configs))
        for what, rows, left_out in (("model", data, models), ("gpu", known, gpus)):
            self.believed_[what] = len(left_out) >= ENOUGH_FOLDS
            width = self._away_width(rows, left_out, self.believed_[what])
            self.unseen_widths_[what] = max(width, self.widths_.pooled)
        return self

    def predict(
        self, configs: Sequence[Config], c: ConfigTable, X: Array, unseen_model: Mask, unseen_gpu: Mask
    ) -> Array:
        """Predicted values, shape (n,)."""
        doubted = unseen_model & (not self.believed_["model"])
        doubted |= (unseen_gpu | self.scarce(configs)) & (not self.believed_["gpu"])
        found: Array = self._value(configs, c) * np.exp(np.where(doubted, 0.0, self._correction(c, X)))
        return found

    def width(self, configs: Sequence[Config], unseen_model: Mask, unseen_gpu: Mask) -> Array:
        """Half-widths of ln(prediction), shape (n,)."""
        known = self.widths_.look_up([interval_kind(x) for x in configs], [x.gpu_model for x in configs])
        of_model = np.where(unseen_model, self.unseen_widths_["model"], 0.0)
        of_gpu = np.where(unseen_gpu | self.scarce(configs), self.unseen_widths_["gpu"], 0.0)
        return np.maximum(known, np.maximum(of_model, of_gpu))

    def scarce(self, configs: Sequence[Config]) -> Mask:
        """Return the rows whose GPU has a handful of runs.

        These runs say less about the GPU than the other GPUs say about an unseen one.
        """
        return np.array([self.runs_.get(x.gpu_model, 0) < ENOUGH for x in configs], dtype=bool)

    def out_of_fold(self, data: Dataset, left_out: Iterable[Fold], trees: int) -> tuple[Array, Array]:
        """Return (ln measured - ln physics, the trees' correction) out of fold.

        Neither physics nor trees were fitted to the rows they answer for.
        """
        wrong, correction = np.full(len(data), np.nan), np.full(len(data), np.nan)
        for train, test in left_out:
            part = Regressor(self.physics)._fit(data.take(train), trees)
            rest = data.take(test)
            wrong[test] = np.log(rest.values / part.physics_.observed(rest.c))
            correction[test] = part._correction(rest.c, rest.X)
        return wrong, correction

    def _value(self, configs: Sequence[Config], c: ConfigTable) -> Array:
        """Return the value by physics.

        For GPUs with a handful of runs the physics is fitted without these, since `LocalCorrection`
        asks how far off it is.
        """
        value, gpus = self.physics_.value(c), np.array([x.gpu_model for x in configs])
        for gpu, weights in self.apart_.items():
            rows = np.flatnonzero(gpus == gpu)
            if len(rows):
                value[rows] = self._of_weights(weights).value(c.take(rows))
        return value

    def _of_weights(self, weights: Array) -> AnalyticModel:
        physics = self.physics()
        physics.weights_ = weights
        return physics

    def _apart(self, data: Dataset) -> dict[str, Array]:
        """Fit weights without each GPU that has a handful of runs.

        GPUs without enough runs of others are left out.
        """
        gpus = np.array([x.gpu_model for x in data.configs])
        found = {}
        for gpu in sorted(gpu for gpu, runs in self.runs_.items() if runs < ENOUGH):
            others = data.take(np.flatnonzero(gpus != gpu))
            if len(others) >= ENOUGH:
                found[gpu] = self.physics().fit(others.c, others.values, others.hashes).weights_
        return found

    def _fit(self, data: Dataset, trees: int) -> Regressor:
        self.physics_ = self.physics().fit(data.c, data.values, data.hashes)
        wrong = np.log(data.values / self.physics_.observed(data.c))
        self.forest_ = Forest(trees).fit(self._view(data.c, data.X), wrong, splits.importance(data))
        return self

    def _correction(self, c: ConfigTable, X: Array) -> Array:
        return self.forest_.predict(self._view(c, X))

    def _view(self, c: ConfigTable, X: Array) -> Array:
        return np.column_stack([X, self.physics_.features(c)])

    def _errors(self, data: Dataset, left_out: Iterable[Fold]) -> Array:
        """Return absolute out-of-fold errors of ln.

        They are infinite, that is unknown, for rows in no fold.
        """
        wrong, correction = self.out_of_fold(data, left_out, TREES)
        errors = np.abs(wrong - correction)
        return np.where(np.isfinite(errors), errors, np.inf)

    def _away_width(self, data: Dataset, left_out: Sequence[Fold], believed: bool) -> float:
        """Half-width for what was left out by the folds; the stated one without any fold."""
        if not left_out:
            return cost_model.Z_80 * cost_model.TAU
        wrong, correction = self.out_of_fold(data, left_out, QUICK_TREES)
        errors = np.abs(wrong - correction if believed else wrong)
        return quantile(errors[np.isfinite(errors)])


def interval_kind(config: Config) -> str:
    """The table that an interval comes from."""
    return f"{config.tuning}|{config.gpu_model}"


def _varied_kinds(data: Dataset) -> list[str]:
    """Return the kind of each row, empty where the kind has few configurations.

    The repeats of a configuration err alike.
    """
    kinds = [interval_kind(x) for x in data.configs]
    varied = Counter(kind for kind, _ in set(zip(kinds, data.hashes, strict=True)))
    return [kind if varied[kind] >= ENOUGH_CONFIGS else "" for kind in kinds]
