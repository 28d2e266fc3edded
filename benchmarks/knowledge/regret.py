"""How much slower recommended configurations are than the best measured ones.

python benchmarks/knowledge/regret.py RUNS.CSV [--source lfb] [--folds 5] [--json OUT]

A job is a model, tuning, sample length and effective batch; its measured rows are the choices.
Each job is judged by a predictor that never saw any of its rows. Aims: median 1.02, 95th
percentile 1.15, and an invalid choice in at most 3 % of jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.data import splits
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.base import MIN_P_VALID, BasePredictor

CATALOGUE = shipped_catalogue()


def job_of(row: Measurement) -> str:
    """The values that a person asks for; everything else is the recommender's choice."""
    config = row.config
    return f"{config.model_name}|{config.tuning}|{config.tokens_per_sample}|{row.effective_batch_size}"


def choices(rows: Sequence[Measurement]) -> list[tuple[Measurement, float]]:
    """(one row of each configuration, its median rate; 0 where it did not run)."""
    same: dict[str, list[Measurement]] = defaultdict(list)
    for row in rows:
        same[config_space.config_hash(row.config)].append(row)
    return [
        (repeats[0], median([row.tokens_per_second or 0.0 for row in repeats]))
        for repeats in same.values()
        if any(row.measured or row.learn_validity for row in repeats)
    ]


def regret(predictor: BasePredictor, rows: Sequence[Measurement]) -> float | None:
    """Return the best measured rate over the chosen one's.

    1 is perfect, infinite means that the choice does not run. None where there is no choice, or no
    option offered is likely enough to run.
    """
    found = choices(rows)
    rates = np.array([rate for _, rate in found])
    if len(found) < 2 or not rates.any():
        return None
    configs = [row.config for row, _ in found]
    scores = predictor.score(configs, columns(configs, CATALOGUE))
    offered = scores.p_valid >= MIN_P_VALID
    if not offered.any():
        return None
    chosen = int(np.argmax(np.where(offered, scores.rate, -1.0)))
    return float(rates.max() / rates[chosen]) if rates[chosen] else float("inf")


def measure(rows: Sequence[Measurement], parts: int) -> dict[str, Any]:
    """Regret over all jobs, each judged by a predictor that never saw its rows."""
    usable = [row for row in known_rows(rows, CATALOGUE) if row.learn and row.status != "refused"]
    jobs = [job_of(row) for row in usable]
    found: list[float | None] = []
    for train, test in splits.grouped(jobs, parts):
        predictor = evaluation.predictor([usable[row] for row in train], CATALOGUE)
        groups: dict[str, list[Measurement]] = defaultdict(list)
        for row in test:
            groups[jobs[row]].append(usable[row])
        found += [regret(predictor, group) for group in groups.values()]
    judged = [value for value in found if value is not None]
    ran = [value for value in judged if np.isfinite(value)]
    return {
        "jobs": len(set(jobs)),
        "jobs_with_a_choice": len(judged),
        "median_regret": round(median(ran), 3),
        "regret_95th": round(float(np.quantile(ran, 0.95)), 3),
        "invalid_share": round(1 - len(ran) / len(judged), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--source", choices=sorted(registry.SOURCES))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures = measure(
        registry.parse(args.runs.read_text(encoding="utf-8"), CATALOGUE, args.source), args.folds
    )
    print(json.dumps(figures, indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
