"""How well similar jobs tell durations, beside the predictor. On the shipped history.

python benchmarks/knowledge/similar_jobs/durations.py [--owners 20] [--past 300] [--seed 0]

Runs are divided by configuration into five parts; each is predicted by a predictor that learnt from the
other four. A run counts as a job with a fixed number of tokens, so that its duration is inverse to its
rate. Owners are made up: each has so many past runs of one base model, drawn at random, of which the last
20 are judged as the portal judges them (`scheduler/selectors/analysis/similar_jobs.py`): similar earlier
runs correct the prediction by a weighted median. Errors are medians of |ln(predicted / took)|.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from math import log
from pathlib import Path
from statistics import median
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.data import splits
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.evaluate import evaluation
from knowledge.reading.similar import Facts, duration_by_neighbours, similarities

SHIPPED = Path(__file__).resolve().parents[3] / "knowledge" / "data" / "executions.csv"
CATALOGUE = shipped_catalogue()
TOKENS = 1e7
JUDGED, FEWEST = 20, 25


class PastRun(NamedTuple):
    """A run as a job: its facts, how long it took, and what was predicted, in s."""

    facts: Facts
    took_s: float
    predicted_s: float


def history() -> list[Measurement]:
    """All shipped runs with a rate."""
    rows = registry.parse(SHIPPED.read_text(encoding="utf-8"), CATALOGUE, None)
    return [row for row in known_rows(rows, CATALOGUE) if row.learn and row.measured]


def predicted(rows: Sequence[Measurement]) -> list[PastRun]:
    """Each run with the prediction of a predictor that knows no run of its configuration."""
    found: dict[int, PastRun] = {}
    for learnt, left_out in splits.grouped([config_space.config_hash(row.config) for row in rows]):
        predictor = evaluation.predictor([rows[at] for at in learnt], CATALOGUE)
        configs = [rows[at].config for at in left_out]
        padded = [rows[at].padded_tokens for at in left_out]
        rates = predictor.score(configs, columns(configs, CATALOGUE, padded)).rate
        for at, rate in zip(left_out, rates, strict=True):
            row = rows[at]
            took = TOKENS / (row.tokens_per_second or 1.0)
            found[int(at)] = PastRun(facts_of(row), took, TOKENS / float(rate))
    return [found[at] for at in sorted(found)]


def facts_of(row: Measurement) -> Facts:
    config = row.config
    return {
        "base_model": config.model_name,
        "tuning": config.tuning,
        "precision": config.precision,
        "tokens_per_sample": config.tokens_per_sample,
        "effective_batch_size": row.effective_batch_size,
        "number_gpus": config.number_gpus,
    }


def judged(past: Sequence[PastRun]) -> tuple[list[float], list[float]]:
    """Errors of the neighbours and of the predictor on the last runs of one owner."""
    last = range(len(past) - JUDGED, len(past))
    alike = similarities([past[at].facts for at in last], [run.facts for run in past])
    near, plain = [], []
    for at, similar in zip(last, alike, strict=True):
        earlier = [(run.took_s, run.predicted_s, similar[n]) for n, run in enumerate(past[:at])]
        corrected = duration_by_neighbours(past[at].predicted_s, earlier)
        if corrected:
            near.append(abs(log(corrected / past[at].took_s)))
            plain.append(abs(log(past[at].predicted_s / past[at].took_s)))
    return near, plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=20)
    parser.add_argument("--past", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    by_model: dict[str, list[PastRun]] = defaultdict(list)
    for run in predicted(history()):
        by_model[str(run.facts["base_model"])].append(run)
    models = [model for model, runs in by_model.items() if len(runs) >= FEWEST]
    draw = random.Random(args.seed)
    every_near: list[float] = []
    every_plain: list[float] = []
    chosen: list[float] = []
    better = 0
    for number in range(args.owners):
        runs = by_model[models[number % len(models)]]
        near, plain = judged(draw.sample(runs, min(args.past, len(runs))))
        if not near:
            continue
        is_better = median(near) < median(plain)
        better += is_better
        every_near += near
        every_plain += plain
        chosen += near if is_better else plain
    print(f"{len(every_near)} judged runs of {args.owners} owners over {len(models)} models")
    print(f"median |ln| of the predictor {median(every_plain):.4f}")
    print(f"corrected by neighbours {median(every_near):.4f}")
    print(f"neighbours are better for {better} owners; told only for them {median(chosen):.4f}")


if __name__ == "__main__":
    main()
