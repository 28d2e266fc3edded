"""How wrong predictions are on what was left out: configurations, models, GPUs.

python benchmarks/knowledge/accuracy.py HISTORY [--only TEXT] [--json OUT]

HISTORY holds the published runs: llmfinetuningbench/runs.csv, fms-acceleration/runs.csv,
mlperf-llama2-70b-lora/runs.csv and litgpt/finetune_table.csv. Whole groups, or sources, are left out in turn;
figures are means over the folds, weighted by their rows, but the worst under-prediction is that of all.
Memory is in % of what was measured; its bias is positive where too much is predicted. "After ten" teaches ten
random runs of the GPU that is else never seen: the mean of three draws. "Plain" is scikit-learn's boosting on
the same features (`plain.py`); its validity leaves out the rows that launch rules refuse, which it
has no rules for. The floor is the error of the mean peak of the other runs of the very configuration, left
out or not, on rows that have any: what their columns do not tell. Beside it stands the predictor's error on
the same rows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.knowledge import plain
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data import splits
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.base import BasePredictor

CATALOGUE = shipped_catalogue()

LFB, FMA, MLPERF = "llmfinetuningbench", "fms-acceleration", "mlperf-llama2-70b-lora"
LITGPT, ALL = "litgpt", "all sources"
FILES = {LFB: "runs.csv", FMA: "runs.csv", MLPERF: "runs.csv", LITGPT: "finetune_table.csv"}
WORST, FLOOR_WORST = "worst under", "floor of worst under"
COLUMNS = {
    "validity error": ("validity_error", "validity_rows"),
    "called valid though not": ("false_ok_rate", "validity_rows"),
    "MAPE": ("throughput_mape", "throughput_rows"),
    "median": ("throughput_median_ape", "throughput_rows"),
    "memory, points": ("memory_mae", "memory_rows"),
    "memory MAPE": ("memory_mape", "memory_rows"),
    "memory bias": ("memory_bias", "memory_rows"),
    WORST: ("memory_worst_under", "memory_rows"),
    "floor of memory MAPE": ("floor_mape", "floor_rows"),
    "the same rows": ("floored_mape", "floor_rows"),
    FLOOR_WORST: ("floor_worst_under", "floor_rows"),
    "coverage": ("coverage_80", "throughput_rows"),
    "width": ("mean_width_80", "throughput_rows"),
    "plain MAPE": ("plain_mape", "plain_rates"),
    "plain validity error": ("plain_validity", "plain_judged"),
    "plain memory, points": ("plain_memory", "plain_peaks"),
}
DRAWS = 3
Known = Sequence[Measurement]


@dataclass(frozen=True, slots=True)
class Split:
    """The rows of a source that are left out."""

    source: str
    unseen: str
    folds: Callable[[Known], Iterator[splits.Fold]]


def by_configuration(rows: Known) -> Iterator[splits.Fold]:
    return splits.grouped([config_space.config_hash(row.config) for row in rows])


def by_system(rows: Known) -> Iterator[splits.Fold]:
    """All runs of one submitter's system."""
    return splits.grouped([row.origin.rpartition("/")[0] for row in rows], 8)


def by_model(rows: Known) -> Iterator[splits.Fold]:
    return splits.grouped([row.config.model_name for row in rows], 8)


def by_gpu(rows: Known) -> Iterator[splits.Fold]:
    return splits.grouped([row.config.gpu_model for row in rows], 8)


def by_size(rows: Known) -> Iterator[splits.Fold]:
    """All systems with equal GPUs, their number and batch."""
    return splits.grouped(
        [f"{row.config.gpu_model} {row.config.number_gpus} {row.effective_batch_size}" for row in rows], 8
    )


def one_source(name: str) -> Callable[[Known], Iterator[splits.Fold]]:
    """All that another source published."""
    short = {LFB: "lfb", FMA: "fma", LITGPT: "litgpt"}[name]

    def fold(rows: Known) -> Iterator[splits.Fold]:
        of_it = np.array([row.source == short for row in rows])
        yield np.flatnonzero(~of_it), np.flatnonzero(of_it)

    return fold


def one_gpu(name: str, taught: int = 0) -> Callable[[Known], Iterator[splits.Fold]]:
    """A GPU model that is never seen, or in so many random runs only."""

    def fold(rows: Known) -> Iterator[splits.Fold]:
        of_it = np.array([row.config.gpu_model == name for row in rows])
        measured = np.flatnonzero(
            of_it & np.array([row.measured and CATALOGUE.knows(row.config) for row in rows])
        )
        if len(measured):
            for draw in range(DRAWS if taught else 1):
                shown = np.random.default_rng(draw).permutation(measured)[:taught]
                learnt = np.union1d(np.flatnonzero(~of_it), shown)
                yield learnt, np.setdiff1d(np.flatnonzero(of_it), shown)

    return fold


def all_splits(gpus: Sequence[str]) -> list[Split]:
    of_a_gpu = [
        Split(LFB, f"{name}{f', after {taught}' if taught else ''}", one_gpu(name, taught))
        for name in gpus
        for taught in (0, 10)
    ]
    return [
        Split(LFB, "configurations", by_configuration),
        Split(LFB, "models", by_model),
        *of_a_gpu,
        Split(FMA, "configurations", by_configuration),
        Split(FMA, "models", by_model),
        Split(MLPERF, "systems", by_system),
        Split(MLPERF, "configurations", by_size),
        Split(MLPERF, "accelerators", by_gpu),
        *(Split(ALL, name, one_source(name)) for name in (LFB, FMA, LITGPT)),
    ]


def of_others(rows: Known) -> Array:
    """Each row's peak by the mean of the configuration's other runs, (n,).

    NaN where it has no peak, or where there are no others.
    """
    peaks = np.array([row.peak_memory_fraction if row.has_peak else np.nan for row in rows], dtype=float)
    names = np.array([config_space.config_hash(CATALOGUE.canonical(row.config)) for row in rows])
    found = np.full(len(rows), np.nan)
    for name in set(names[np.isfinite(peaks)]):
        same = np.flatnonzero((names == name) & np.isfinite(peaks))
        if len(same) > 1:
            found[same] = (peaks[same].sum() - peaks[same]) / (len(same) - 1)
    return found


def floor(rows: Known, others: Array, scorer: BasePredictor) -> dict[str, float]:
    """The errors of `others` and of a predictor on the rows that have others."""
    twinned = np.flatnonzero(np.isfinite(others))
    if not len(twinned):
        return {"floor_rows": 0}
    some = [rows[int(row)] for row in twinned]
    error = others[twinned] / [row.peak_memory_fraction or np.nan for row in some] - 1
    return {
        "floor_rows": len(some),
        "floor_mape": float(np.abs(error).mean()),
        "floor_worst_under": float(max(0.0, -error.min())),
        "floored_mape": evaluation.metrics(scorer, some).get("memory_mape", np.nan),
    }


def measure(rows: Known, split: Split) -> dict[str, float]:
    found, others = [], of_others(rows)
    for train, test in split.folds(rows):
        learnt, left_out = [rows[row] for row in train], [rows[row] for row in test]
        scorer = evaluation.predictor(learnt, CATALOGUE)
        found.append(
            evaluation.metrics(scorer, left_out)
            | plain.figures(learnt, left_out)
            | floor(left_out, others[test], scorer)
        )
    means = {}
    for name, (figure, count) in COLUMNS.items():
        stated = [one for one in found if one.get(count)]
        if stated:
            weights = [one[count] for one in stated]
            values = [one[figure] for one in stated]
            means[name] = float(
                max(values) if name in (WORST, FLOOR_WORST) else np.average(values, weights=weights)
            )
    return means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--only", default="", help="splits whose name contains this")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    known = {
        source: registry.parse((args.history / source / name).read_text(encoding="utf-8"), CATALOGUE)
        for source, name in FILES.items()
    }
    known[ALL] = [row for rows in known.values() for row in rows]
    gpus = sorted({row.config.gpu_model for row in known[LFB]})
    found = {}
    print("| source, what is unseen | " + " | ".join(COLUMNS) + " |\n" + "| --- " * (len(COLUMNS) + 1) + "|")
    for split in all_splits(gpus):
        name = f"{split.source}, {split.unseen}"
        if args.only in name:
            found[name] = figures = measure(known[split.source], split)
            cells = [_cell(column, figures.get(column)) for column in COLUMNS]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if column == "width" else f"{value:.1%}"


if __name__ == "__main__":
    main()
