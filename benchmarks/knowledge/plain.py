"""The baseline of benchmarks/knowledge/accuracy.py: scikit-learn's boosting.

It learns from the same features as our trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.domain.arrays import Array
from knowledge.core.model import estimators, features

CATALOGUE = shipped_catalogue()

STARTED = ("ok", "oom", "failed")


def figures(train: Sequence[Measurement], test: Sequence[Measurement]) -> dict[str, float]:
    """Return the errors of boosted rates per GPU, of peaks and of validity.

    Each comes with the number of rows judged.
    """
    words = features.vocabulary([row.config for row in known_rows(train, CATALOGUE)])
    with estimators.one_thread():
        return {
            **_rate(_known(train, "measured"), _known(test, "measured"), words),
            **_memory(_with_peak(train), _with_peak(test), words),
            **_validity(_judged(train), _judged(test), words),
        }


def _rate(train: Sequence[Measurement], test: Sequence[Measurement], words: Any) -> dict[str, float]:
    if not train or not test:
        return {}
    per_gpu = [
        np.array([(row.tokens_per_second or 1.0) / row.config.number_gpus for row in rows])
        for rows in (train, test)
    ]
    said = _boosted(HistGradientBoostingRegressor(), train, np.log(per_gpu[0]), test, words)
    return {"plain_mape": float(np.mean(np.abs(np.exp(said) / per_gpu[1] - 1))), "plain_rates": len(test)}


def _memory(train: Sequence[Measurement], test: Sequence[Measurement], words: Any) -> dict[str, float]:
    if not train or not test:
        return {}
    peaks = [np.array([row.peak_memory_fraction for row in rows], dtype=float) for rows in (train, test)]
    said = _boosted(HistGradientBoostingRegressor(), train, peaks[0], test, words)
    return {"plain_memory": float(np.mean(np.abs(said - peaks[1]))), "plain_peaks": len(test)}


def _validity(train: Sequence[Measurement], test: Sequence[Measurement], words: Any) -> dict[str, float]:
    ran = [np.array([row.status == "ok" for row in rows]) for rows in (train, test)]
    if not train or not test or ran[0].all():
        return {}
    said = _boosted(HistGradientBoostingClassifier(), train, ran[0], test, words)
    return {"plain_validity": float(np.mean(said != ran[1])), "plain_judged": len(test)}


def _boosted(
    boosting: Any, train: Sequence[Measurement], target: Array, test: Sequence[Measurement], words: Any
) -> Array:
    seen, queries = _matrix(train, words), _matrix(test, words)
    known = np.isfinite(seen).any(axis=0)
    found: Array = boosting.fit(seen[:, known], target).predict(queries[:, known])
    return found


def _matrix(rows: Sequence[Measurement], words: Any) -> Array:
    configs = [row.config for row in rows]
    return features.matrix(configs, columns(configs, CATALOGUE, [row.padded_tokens for row in rows]), words)


def _known(rows: Sequence[Measurement], what: str) -> list[Measurement]:
    return [row for row in known_rows(rows, CATALOGUE) if getattr(row, what)]


def _with_peak(rows: Sequence[Measurement]) -> list[Measurement]:
    return [row for row in _known(rows, "learn") if row.status == "ok" and row.peak_memory_fraction]


def _judged(rows: Sequence[Measurement]) -> list[Measurement]:
    """Rows that launch rules let through, of sources that publish failures."""
    return [row for row in _known(rows, "learn_validity") if row.status in STARTED]
