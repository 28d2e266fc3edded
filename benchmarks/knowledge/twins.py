"""The part of MLPerf's error that any predictor must leave.

python benchmarks/knowledge/twins.py HISTORY [--json OUT]

Systems that are equal in every column still differ. HISTORY is the folder that
benchmarks/knowledge/accuracy.py takes. Twins are runs equal in GPU model, numbers of GPUs and nodes,
effective batch, accumulation and model parallelism. Each row is predicted by the median of its
twins of other submitters (all that the columns can tell), by the other runs of its own system
(pure chance), and by a predictor that never saw its system. Errors are in % of the measured
rate.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.knowledge.accuracy import MLPERF, by_system
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import registry
from knowledge.core.domain.arrays import Array
from knowledge.core.evaluate import evaluation

CATALOGUE = shipped_catalogue()

Key = Callable[[Measurement], Hashable]


def twin(row: Measurement) -> Hashable:
    """The machine and the training as MLPerf's columns describe them."""
    config = row.config
    return (
        config.gpu_model,
        config.number_gpus,
        config.number_nodes,
        row.effective_batch_size,
        config.gradient_accumulation_steps,
        config.model_parallel,
    )


def system(row: Measurement) -> str:
    return row.origin.rpartition("/")[0]


def submitter(row: Measurement) -> str:
    return row.origin.partition("/")[0]


def rates(rows: Sequence[Measurement]) -> Array:
    return np.array([row.tokens_per_second for row in rows], dtype=float)


def by_others(rows: Sequence[Measurement], alike: Key, apart: Key) -> Array:
    """Return each row's error against the median rate of its like.

    Its like are the rows that are equal in `alike` and differ in `apart`; NaN where there are none.
    """
    kinds, sides = [alike(row) for row in rows], [apart(row) for row in rows]
    measured, found = rates(rows), np.full(len(rows), np.nan)
    for at, (kind, side) in enumerate(zip(kinds, sides, strict=True)):
        others = [n for n, other in enumerate(kinds) if other == kind and sides[n] != side]
        if others:
            found[at] = np.median(measured[others]) / measured[at] - 1
    return np.abs(found)


def by_predictor(rows: Sequence[Measurement]) -> Array:
    """Each row's error by a predictor that never saw its system."""
    error = np.full(len(rows), np.nan)
    for train, test in by_system(list(rows)):
        left_out = [rows[row] for row in test]
        configs = [row.config for row in left_out]
        predictor = evaluation.predictor([rows[row] for row in train], CATALOGUE)
        error[test] = predictor.score(configs, columns(configs, CATALOGUE)).rate / rates(left_out) - 1
    return np.abs(error)


def summary(errors: Array) -> dict[str, float]:
    known = errors[np.isfinite(errors)]
    return {"rows": len(known), "mean": float(known.mean()), "median": float(np.median(known))}


def measure(rows: Sequence[Measurement]) -> dict[str, dict[str, float]]:
    twins, again = by_others(rows, twin, submitter), by_others(rows, system, lambda row: row.origin)
    error, has_twin = by_predictor(rows), np.isfinite(twins)
    return {
        "by the other runs of the system": summary(again),
        "with twins of other submitters, by those": summary(twins),
        "the same, by the predictor": summary(error[has_twin]),
        "without such twins, by the predictor": summary(error[~has_twin]),
        "all, by the predictor": summary(error),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    text = (args.history / MLPERF / "runs.csv").read_text(encoding="utf-8")
    found = measure(
        [row for row in known_rows(registry.parse(text, CATALOGUE, "mlperf"), CATALOGUE) if row.measured]
    )
    print("| MLPerf runs | rows | mean | median |\n| --- | --- | --- | --- |")
    for name, cells in found.items():
        print(f"| {name} | {cells['rows']:,} | {cells['mean']:.1%} | {cells['median']:.1%} |")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
