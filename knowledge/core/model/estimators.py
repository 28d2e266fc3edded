"""Estimators that learn the errors of the prior.

They follow scikit-learn and see rows as matrices. For validity, boosting and extremely
randomised trees err differently, so their mean beats both; for rates and peaks the trees alone
suffice, with their extremes trimmed (docs/measurements/accuracy.md has the figures). Every estimator guards
against columns that hold no value at all in a training set. scikit-learn is imported where it
is needed: that takes a second, and most processes of the portal never predict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from knowledge.core.data import splits
from knowledge.core.domain.arrays import Array

ISOTONIC_ROWS = 200
SUREST = 0.005  # probabilities that were calibrated by rows are never nearer to 0 or 1
TREES = 60
QUICK_TREES = 30  # where only the size of the error matters, not its last percent
TRIMMED = 0.15  # share of the trees left out at either end: leaves with a run that thrashed its memory
_MISSING = -1.0  # the trees that cannot take NaN read this


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    import sklearn.ensemble  # noqa: F401 - the controller limits only the libraries that are loaded by now

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit boosting to one thread.

    On a busy machine two threads take up to twenty times as long as one.
    """
    with _threads().limit(limits=1):
        yield


def classifiers(trees: int = 60) -> list[Any]:
    """Fresh estimators for validity."""
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

    return [
        HistGradientBoostingClassifier(max_iter=150, learning_rate=0.08, max_depth=6, min_samples_leaf=5),
        ExtraTreesClassifier(trees, max_features=0.5, random_state=0),
    ]


class Forest:
    """Extremely randomised trees (Geurts et al. 2006) with a trimmed mean.

    After `fit`: `columns_` (mask of shape (k,)) and `trees_`.
    """

    def __init__(self, trees: int = TREES) -> None:
        self.trees = trees

    def fit(self, X: Array, y: Array, weight: Array) -> Forest:
        """X: shape (n, k), NaN unknown. y and weight: shape (n,)."""
        from sklearn.ensemble import ExtraTreesRegressor

        self.columns_: Array = np.asarray(np.isfinite(X).any(axis=0))
        trees = ExtraTreesRegressor(self.trees, max_features=0.7, random_state=0)
        self.trees_ = trees.fit(_filled(X[:, self.columns_]), y, sample_weight=weight)
        return self

    def predict(self, X: Array) -> Array:
        """Shape (n,)."""
        rows = np.asarray(_filled(_taken(X, self.columns_)), dtype=np.float32)
        said = np.sort([tree.tree_.predict(rows)[:, 0] for tree in self.trees_.estimators_], axis=0)
        left_out = int(TRIMMED * len(said))
        found: Array = said[left_out : len(said) - left_out].mean(axis=0)
        return found


class Ensemble:
    """The mean of several classifiers on the columns that hold values.

    After `fit`: `columns_` (mask of shape (k,)) and `members_`.
    """

    def __init__(self, make: Callable[[], list[Any]]) -> None:
        self.make = make

    def fit(self, X: Array, y: Array) -> Ensemble:
        """X: shape (n, k), NaN unknown. y: 0 or 1, shape (n,)."""
        self.columns_: Array = np.asarray(np.isfinite(X).any(axis=0))
        self.members_ = [member.fit(self._view(X, member), y) for member in self.make()]
        return self

    def predict(self, X: Array) -> Array:
        """The members' mean probability of class 1. Shape (n,)."""
        said = [_probability(member, self._view(X, member)) for member in self.members_]
        found: Array = np.mean(said, axis=0)
        return found

    def _view(self, X: Array, member: Any) -> Array:
        from sklearn.ensemble import HistGradientBoostingClassifier

        used = _taken(X, self.columns_)
        return used if isinstance(member, HistGradientBoostingClassifier) else _filled(used)


def _probability(member: Any, X: Array) -> Array:
    """The probability of class 1, shape (n,).

    A forest's trees are asked one by one: its own way through joblib costs more than they do.
    """
    from sklearn.ensemble import ExtraTreesClassifier

    if not isinstance(member, ExtraTreesClassifier):
        of_classes: Array = member.predict_proba(X)
        return of_classes[:, 1]
    rows = np.asarray(X, dtype=np.float32)
    found: Array = sum(tree.tree_.predict(rows)[:, 1] for tree in member.estimators_) / len(member)
    return found


def _taken(X: Array, columns: Array) -> Array:
    """Return the columns of a mask.

    Columns beyond it are of settings that were added since the fit.
    """
    taken: Array = X[:, : len(columns)][:, columns]
    return taken


def _filled(X: Array) -> Array:
    return np.nan_to_num(X, nan=_MISSING)


def out_of_fold(make: Callable[[], list[Any]], X: Array, y: Array, groups: Sequence[str]) -> Array:
    """Return probabilities of class 1 for each row, shape (n,).

    The classifiers never saw a row of the same group; NaN is unknown.
    """
    found = np.full(len(y), np.nan)
    for train, test in splits.grouped(groups):
        if len(set(y[train])) > 1:
            found[test] = Ensemble(make).fit(X[train], y[train]).predict(X[test])
    return found


class ProbabilityMap:
    """Monotone map from raw to calibrated probabilities.

    It is isotonic from 200 rows on, else a sigmoid. After `fit`: `raw_` and `calibrated_`, knots
    between which it interpolates.
    """

    def fit(self, raw: Array, happened: Array) -> ProbabilityMap:
        """raw: out-of-fold probabilities, shape (n,). happened: 0 or 1, shape (n,)."""
        from sklearn.isotonic import IsotonicRegression
        from sklearn.linear_model import LogisticRegression

        grid = np.linspace(0.0, 1.0, 101)
        if len(raw) >= ISOTONIC_ROWS:
            curve = IsotonicRegression(y_min=SUREST, y_max=1 - SUREST, out_of_bounds="clip").fit(
                raw, happened
            )
            self.calibrated_: Array = curve.predict(grid)
        else:
            curve = LogisticRegression().fit(raw.reshape(-1, 1), happened)
            self.calibrated_ = curve.predict_proba(grid.reshape(-1, 1))[:, 1]
        self.raw_: Array = grid
        return self

    def predict(self, raw: Array) -> Array:
        """Calibrated probabilities, shape (n,)."""
        return np.interp(raw, self.raw_, self.calibrated_)
