"""How far a calibration's own estimate of its error can be believed.

python benchmarks/knowledge/self_judgement.py RUNS.CSV [--source lfb]

The estimate is compared with the error on all runs that the calibration did not use. One GPU
model after the other is left out of training, and runs on it are chosen as a calibration
chooses them, from another half of its configurations each time. There are two ways to judge:
every run predicted without itself and its likes (`knowledge.core.evaluate.cross_validation`),
and the last third of the runs predicted from the others. The truth is the median error on all
runs that were not chosen. Errors are medians of |ln|, means over draws.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.knowledge.transfer import ENOUGH, orders, split
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.evaluate import evaluation
from knowledge.core.evaluate.cross_validation import leave_one_out_errors
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor

CATALOGUE = shipped_catalogue()

COUNTS = (10, 15, 20)
DRAWS = 16
Judgement = tuple[float, float]  # before, after


def judgement(
    predictor: LearnedPredictor, mine: Sequence[Measurement], order: Sequence[str]
) -> dict[str, Judgement]:
    """Return what each way estimates from the runs in `order`, and the truth.

    order: hashes of configurations
    """
    taught, rest = split(mine, set(order))
    by_name = {config_space.config_hash(row.config): row for row in taught}
    runs = [by_name[name] for name in order]
    third = 2 * len(runs) // 3
    found = leave_one_out_errors(predictor, [], runs)
    return {
        "each left out": (median(found.before), median(found.after)),
        "last third": _errors(predictor, runs[:third], runs[third:]),
        "truth": _errors(predictor, runs, rest),
    }


def _errors(
    predictor: LearnedPredictor, own: Sequence[Measurement], rows: Sequence[Measurement]
) -> Judgement:
    before, after = (
        median(evaluation.log_errors(replace(predictor, observations=Observations.of(runs, CATALOGUE)), rows))
        for runs in ([], own)
    )
    return before, after


def report(gpu: str, count: int, drawn: Sequence[Mapping[str, Judgement]]) -> None:
    """Print a line for each way of judging.

    It holds the means, the distance of the estimated gain from the true one, and how often the way
    reports a loss.
    """
    true = np.array([one["truth"] for one in drawn])
    for way in drawn[0]:
        said = np.array([one[way] for one in drawn])
        gain, true_gain = said[:, 0] - said[:, 1], true[:, 0] - true[:, 1]
        off = float(np.sqrt(np.mean((gain - true_gain) ** 2)))
        before, after = said.mean(axis=0)
        print(
            f"{gpu:15} {count:3} runs  {way:14} {before:.3f} -> {after:.3f}, gain off by {off:.3f},"
            f" a loss in {int((gain < 0).sum())} of {len(drawn)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--source", choices=sorted(registry.SOURCES))
    args = parser.parse_args()
    rows = registry.parse(args.runs.read_text(encoding="utf-8"), CATALOGUE, args.source)
    usable = [row for row in known_rows(rows, CATALOGUE) if row.learn and row.status != "refused"]
    for gpu in sorted({row.config.gpu_model for row in usable}):
        mine = [row for row in usable if row.config.gpu_model == gpu and row.measured]
        configs = {config_space.config_hash(row.config): row.config for row in mine}
        others = [row for row in usable if row.config.gpu_model != gpu]
        if len(configs) < ENOUGH or not others:
            continue
        predictor = evaluation.predictor(others, CATALOGUE)
        drawn = [orders(predictor, configs, seed)["chosen"] for seed in range(DRAWS)]
        for count in (count for count in COUNTS if count <= len(drawn[0])):
            report(gpu, count, [judgement(predictor, mine, order[:count]) for order in drawn])


if __name__ == "__main__":
    main()
