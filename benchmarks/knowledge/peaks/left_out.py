"""Errors of predicted peaks by whole groups of rows, in seconds, where accuracy.py takes minutes.

    python benchmarks/knowledge/peaks/left_out.py HISTORY [--only TEXT]

HISTORY is the folder that benchmarks/knowledge/accuracy.py takes, and the groups are its own. Peaks alone are
learnt and judged: by physics at its stated weights, which answers for software that history does not have,
by physics fitted to the other groups, which answers for an unseen GPU where few are known, and by both with
trees, which answer for the rest. Figures are means of |error|, of errors, and the worst error below 0, in
shares of what was measured.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import numpy as np

from benchmarks.knowledge import accuracy
from knowledge.core.analytic import cost_model, peak_memory
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.peak_memory import PeakMemory
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.data.splits import Dataset
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.model import features
from knowledge.core.model.estimators import TREES
from knowledge.core.model.regressor import Regressor

SOURCES = (accuracy.LFB, accuracy.FMA, accuracy.LITGPT)
FULL = 0.99  # of the limit: samples count as whole


def has_known_peak(row: Measurement) -> bool:
    return row.has_peak and accuracy.CATALOGUE.knows(row.config)


def dataset(rows: list[Measurement], learnt: list[Measurement]) -> Dataset:
    """All rows, with the categories of those that are learnt from."""
    configs = [row.config for row in rows]
    c = columns(configs, accuracy.CATALOGUE, [row.padded_tokens for row in rows])
    words = features.vocabulary([row.config for row in learnt if row.measured])
    shares = np.array([row.peak_memory_fraction for row in rows], dtype=float)
    return Dataset(configs, c.identities(configs), c, features.matrix(configs, c, words), shares * c.memory)


def by_physics(rows: list[Measurement]) -> Array:
    """Errors of physics at its stated weights."""
    data = dataset([row for row in rows if has_known_peak(row)], [])
    return peak_memory.shown(data.c, cost_model.memory(data.c).total) / data.values - 1


def of_many_lengths(rows: list[Measurement]) -> Mask:
    """The rows with a known peak whose samples are shorter than their limit in the mean."""
    known = [row for row in rows if has_known_peak(row)]
    return np.array([(row.padded_tokens or np.inf) < FULL * row.config.tokens_per_sample for row in known])


def by_row(rows: list[Measurement], split: accuracy.Split) -> dict[str, Array]:
    """Errors of the rows with a known peak by the way to answer; NaN where a row was not left out."""
    told = np.array([has_known_peak(row) for row in rows])
    peaks, places = [row for row in rows if has_known_peak(row)], np.cumsum(told) - 1
    found = {name: np.full(len(peaks), np.nan) for name in ("fitted", "trees")}
    for train, test in split.folds(rows):
        learnt, left_out = places[train][told[train]], places[test][told[test]]
        if not len(left_out):
            continue
        data = dataset(peaks, [rows[row] for row in train])
        wrong, correction = Regressor(PeakMemory).out_of_fold(data, [(learnt, left_out)], TREES)
        for name, logarithms in (("fitted", -wrong), ("trees", correction - wrong)):
            predicted = peak_memory.shown(data.c, data.values * np.exp(logarithms))
            found[name][left_out] = (predicted / data.values - 1)[left_out]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--only", default="", help="splits whose name contains this")
    args = parser.parse_args()
    print("| source, what is unseen | peaks | by | mean error | bias | worst under |\n" + "| --- " * 6 + "|")
    for source in SOURCES:
        text = (args.history / source / accuracy.FILES[source]).read_text(encoding="utf-8")
        rows = registry.parse(text, accuracy.CATALOGUE)
        errors, varied = by_physics(rows), of_many_lengths(rows)
        _print(f"{source}, as a whole", "stated", errors)
        if varied.any():
            _print(f"{source}, samples of one length", "stated", errors[~varied])
            _print(f"{source}, samples of many lengths", "stated", errors[varied])
        gpus = sorted({row.config.gpu_model for row in rows})
        for split in accuracy.all_splits(gpus):
            name = f"{source}, {split.unseen}"
            if split.source == source and args.only in name and "after" not in name:
                for way, errors in by_row(rows, split).items():
                    _print(name, way, errors[np.isfinite(errors)])


def _print(name: str, way: str, errors: Array) -> None:
    worst = max(0.0, -errors.min())
    figures = f"{np.abs(errors).mean():.1%} | {errors.mean():+.1%} | {worst:.1%}"
    print(f"| {name} | {len(errors)} | {way} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
