"""How fast predictions for a GPU that was never measured become good.

python benchmarks/knowledge/transfer.py RUNS.CSV [--source lfb] [--json OUT]

Measures the error after 0 to 50 runs on it. One GPU model after the other is left out of
training. Some of its runs are then taken as calibration runs, by
`evaluate.experiment_design.choose_experiments` or at random, and the rest is predicted with
them as own runs. Both ways draw from the same half of its configurations, another half each
time: figures are means over the draws, and a count of runs is judged only where the half is at
least as large.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.domain.types import Config
from knowledge.core.evaluate import evaluation
from knowledge.core.evaluate.experiment_design import choose_experiments
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor

CATALOGUE = shipped_catalogue()

COUNTS = (0, 5, 10, 20, 50)
ENOUGH = 20  # configurations of a GPU model for it to be judged
DRAWS = 5
FIGURES = ("throughput_mape", "throughput_median_ape", "coverage_80", "mean_width_80")
Figures = dict[str, float]


def figures(
    predictor: LearnedPredictor, taught: Sequence[Measurement], rest: Sequence[Measurement]
) -> Figures:
    """Errors on `rest` with `taught` as own runs."""
    found = evaluation.metrics(replace(predictor, observations=Observations.of(taught, CATALOGUE)), rest)
    return {name: float(found[name]) for name in FIGURES}


def split(mine: Sequence[Measurement], wanted: set[str]) -> tuple[list[Measurement], list[Measurement]]:
    """One run of each wanted configuration, and all runs of the others."""
    hashes = [config_space.config_hash(row.config) for row in mine]
    first = {name: hashes.index(name) for name in wanted}
    rest = [row for row, name in zip(mine, hashes, strict=True) if name not in wanted]
    return [mine[place] for place in sorted(first.values())], rest


def orders(predictor: LearnedPredictor, configs: Mapping[str, Config], seed: int) -> dict[str, list[str]]:
    """Return the order of runs for each way of choosing.

    Both order the same half of the configurations, by their hashes.
    """
    half = random.Random(seed).sample(sorted(configs), len(configs) // 2)
    chosen = choose_experiments([configs[name] for name in half], predictor, min(COUNTS[-1], len(half)))
    return {"chosen": [config_space.config_hash(config) for config in chosen], "random": half}


def curve(predictor: LearnedPredictor, mine: Sequence[Measurement]) -> dict[str, dict[int, Figures]]:
    """Mean figures by way of choosing and number of runs."""
    configs = {config_space.config_hash(row.config): row.config for row in mine}
    drawn: dict[str, dict[int, list[Figures]]] = {"chosen": {}, "random": {}}
    for seed in range(DRAWS):
        for way, order in orders(predictor, configs, seed).items():
            for count in (count for count in COUNTS if count <= len(order)):
                found = figures(predictor, *split(mine, set(order[:count])))
                drawn[way].setdefault(count, []).append(found)
    return {way: {count: _means(one) for count, one in found.items()} for way, found in drawn.items()}


def _means(found: Sequence[Figures]) -> Figures:
    return {name: float(np.mean([one[name] for one in found])) for name in FIGURES}


def measure(rows: Sequence[Measurement]) -> dict[str, Any]:
    """The curve of every GPU model with enough runs."""
    usable = [row for row in known_rows(rows, CATALOGUE) if row.learn and row.status != "refused"]
    found = {}
    for gpu in sorted({row.config.gpu_model for row in usable}):
        mine = [row for row in usable if row.config.gpu_model == gpu and row.measured]
        others = [row for row in usable if row.config.gpu_model != gpu]
        if len({config_space.config_hash(row.config) for row in mine}) >= ENOUGH and others:
            found[gpu] = {"runs": len(mine), **curve(evaluation.predictor(others, CATALOGUE), mine)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--source", choices=sorted(registry.SOURCES))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = measure(registry.parse(args.runs.read_text(encoding="utf-8"), CATALOGUE, args.source))
    print("runs: MAPE / median / coverage of 80 %, in %, width")
    for gpu, curves in found.items():
        for way in ("chosen", "random"):
            cells = "  ".join(f"{count}: {_cell(one)}" for count, one in curves[way].items())
            print(f"{gpu:15} {curves['runs']:5} runs  {way:7} {cells}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _cell(found: Figures) -> str:
    mape, median, coverage, width = (found[name] for name in FIGURES)
    return f"{100 * mape:.1f} / {100 * median:.1f} / {100 * coverage:.0f} / {width:.2f}"


if __name__ == "__main__":
    main()
