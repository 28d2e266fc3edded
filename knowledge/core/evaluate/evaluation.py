"""The errors of a predictor on rows it was not trained on.

All figures are fractions, not percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from knowledge.core.data.measurement import Measurement, known_rows, table
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.model.fitted_model import FittedModel, fit_model, hardware_kind
from knowledge.core.predict.base import BasePredictor, PredictionBatch
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor

Figures = dict[str, float | int]
JUDGED = (
    "validity_error",
    "false_ok_rate",
    "throughput_mape",
    "throughput_median_ape",
    "throughput_log_error",
    "coverage_80",
    "mean_width_80",
    "memory_mae",
    "memory_mape",
    "memory_bias",
    "memory_worst_under",
)
COUNTED = ("outside_rows", "validity_rows", "throughput_rows", "memory_rows")
KINDS = ("gpu", "cpu")


def train(rows: Sequence[Measurement], catalogue: Catalogue) -> dict[str, FittedModel]:
    """Fit models to the rows, by kind of hardware.

    Kinds with too few rows are left out.
    """
    found = {kind: fit_model(rows, kind, catalogue) for kind in KINDS}
    return {kind: knowledge for kind, knowledge in found.items() if knowledge is not None}


def predictor(rows: Sequence[Measurement], catalogue: Catalogue) -> LearnedPredictor:
    """Return a predictor trained on the rows.

    Rows of a kind of hardware that has too few of them count as own runs do.
    """
    knowledge = train(rows, catalogue)
    few = [row for row in rows if row.learn and hardware_kind(row.config) not in knowledge]
    ended = [row for row in few if row.status in ("ok", "oom")]
    observations = Observations.of(ended, catalogue)
    return LearnedPredictor(knowledge=knowledge, catalogue=catalogue, observations=observations)


def figures(scorer: BasePredictor, rows: Sequence[Measurement]) -> dict[str, float | int | None]:
    """`metrics` with every figure there: None where no row could tell."""
    return {**dict.fromkeys(COUNTED, 0), **dict.fromkeys(JUDGED), **metrics(scorer, rows)}


def metrics(scorer: BasePredictor, rows: Sequence[Measurement]) -> Figures:
    """Compute errors and coverage on the rows.

    Validity counts rows of sources that publish their failures. Refused rows are judged by the
    launch rules, which call them invalid for certain.
    """
    known = known_rows(rows, scorer.catalogue)
    found: Figures = {"rows": len(rows), "unknown_rows": len(rows) - len(known)}
    if not known:
        return found
    safe = [_rule_safe(row) for row in known]
    configs, c = [row.config for row in safe], table(safe, scorer.catalogue)
    scores = scorer.score(configs, c)
    found["outside_rows"] = int(scores.outside.sum())
    return found | _validity(scores, known) | _rate(scores, known) | _memory(scores, known, c.memory)


def log_errors(scorer: BasePredictor, rows: Sequence[Measurement]) -> list[float]:
    """|ln measured - ln predicted| of the rate of each measured row."""
    known = known_rows([row for row in rows if row.measured], scorer.catalogue)
    configs = [row.config for row in known]
    if not known:
        return []
    rates = scorer.score(configs, table(known, scorer.catalogue)).rate
    return [
        abs(float(np.log((row.tokens_per_second or 1.0) / rate)))
        for row, rate in zip(known, rates, strict=True)
    ]


def _rule_safe(row: Measurement) -> Measurement:
    """Return the row with a per-device batch of at least one sample.

    Refused rows may state no whole per-device batch; the launch rule decides about them anyway.
    """
    batch = max(1, row.config.per_device_batch_size)
    return replace(row, config=replace(row.config, per_device_batch_size=batch))


def _validity(scores: PredictionBatch, rows: Sequence[Measurement]) -> Figures:
    judged = np.array([row.learn_validity for row in rows], dtype=bool)
    if not judged.any():
        return {"validity_rows": 0}
    ran = np.array([row.status == "ok" for row in rows], dtype=bool)
    refused = np.array([row.status == "refused" for row in rows], dtype=bool)
    says_ok = (scores.p_valid > 0.5) & ~refused
    invalid = judged & ~ran
    return {
        "validity_rows": int(judged.sum()),
        "validity_error": float(np.mean(says_ok[judged] != ran[judged])),
        "false_ok_rate": float(np.mean(says_ok[invalid])) if invalid.any() else 0.0,
    }


def _rate(scores: PredictionBatch, rows: Sequence[Measurement]) -> Figures:
    rated = np.array([row.measured for row in rows], dtype=bool)
    if not rated.any():
        return {"throughput_rows": 0}
    actual = np.array([row.tokens_per_second or np.nan for row in rows], dtype=float)[rated]
    error = np.abs(scores.rate[rated] / actual - 1)
    low, high = scores.rate_low[rated], scores.rate_high[rated]
    bounded = (high / low)[np.isfinite(high / low)]
    return {
        "throughput_rows": int(rated.sum()),
        "throughput_mape": float(error.mean()),
        "throughput_median_ape": float(np.median(error)),
        "throughput_log_error": float(np.mean(np.abs(np.log(scores.rate[rated] / actual)))),
        "coverage_80": float(np.mean((low <= actual) & (actual <= high))),
        "mean_width_80": float(np.mean(bounded)) if len(bounded) else 0.0,
    }


def _memory(scores: PredictionBatch, rows: Sequence[Measurement], capacity: Array) -> Figures:
    """Return the errors of the peak.

    They are shares of the GPU's memory (`memory_mae`), else of what was measured. No GPU shows more than it
    has, so a prediction beyond that counts as all of it. The bias is positive where too much is predicted;
    the worst prediction that is too low counts from 0 upwards.
    """
    usable = [bool(row.peak_memory_fraction) and row.status == "ok" and row.learn for row in rows]
    known = np.array(usable, dtype=bool)
    if not known.any():
        return {"memory_rows": 0}
    actual = np.array([row.peak_memory_fraction or np.nan for row in rows], dtype=float)[known]
    predicted = np.clip(scores.memory[known] / capacity[known], 0, 1)
    error = predicted / actual - 1
    return {
        "memory_rows": int(known.sum()),
        "memory_mae": float(np.mean(np.abs(predicted - actual))),
        "memory_mape": float(np.mean(np.abs(error))),
        "memory_bias": float(np.mean(error)),
        "memory_worst_under": float(max(0.0, -error.min())),
    }
