"""How fast predictions for a GPU that was never measured become good: error after 0 to 50 runs on it.

python benchmarks/transfer.py RUNS.CSV [--source lfb] [--json OUT]

One GPU model after the other is left out of training. Some of its runs are then taken as calibration runs, by
`knowledge.core.informative.choose` or at random, and the rest is predicted with them as own runs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from knowledge.core import evaluate, space
from knowledge.core.blend import Observations
from knowledge.core.informative import choose
from knowledge.core.learned_predictor import LearnedPredictor
from knowledge.core.rows import Row
from knowledge.core.sources import registry

COUNTS = (0, 5, 10, 20, 50)
ENOUGH = 2 * COUNTS[-1]  # runs of a GPU model for it to be judged
SEEDS = 3


def figures(predictor: LearnedPredictor, taught: Sequence[Row], rest: Sequence[Row]) -> dict[str, float]:
    """Errors on `rest` with `taught` as own runs."""
    found = evaluate.metrics(replace(predictor, observations=Observations.of(taught)), rest)
    return {"mape": float(found["throughput_mape"]), "median": float(found["throughput_median_ape"])}


def split(mine: Sequence[Row], wanted: set[str]) -> tuple[list[Row], list[Row]]:
    """One run of each wanted configuration, and all runs of the others."""
    hashes = [space.config_hash(row.config) for row in mine]
    first = {name: hashes.index(name) for name in wanted}
    rest = [row for row, name in zip(mine, hashes, strict=True) if name not in wanted]
    return [mine[place] for place in sorted(first.values())], rest


def curve(predictor: LearnedPredictor, mine: Sequence[Row]) -> dict[str, dict[int, dict[str, float]]]:
    """Errors by way of choosing and number of runs."""
    configs = list({space.config_hash(row.config): row.config for row in mine}.values())
    chosen = [space.config_hash(config) for config in choose(configs, predictor, COUNTS[-1])]
    found: dict[str, dict[int, dict[str, float]]] = {"chosen": {}, "random": {}}
    for count in COUNTS:
        found["chosen"][count] = figures(predictor, *split(mine, set(chosen[:count])))
        drawn = []
        for seed in range(SEEDS):
            names = sorted(space.config_hash(config) for config in configs)
            drawn.append(figures(predictor, *split(mine, set(random.Random(seed).sample(names, count)))))
        found["random"][count] = {key: float(np.mean([one[key] for one in drawn])) for key in drawn[0]}
    return found


def measure(rows: Sequence[Row]) -> dict[str, Any]:
    """The curve of every GPU model with enough runs."""
    usable = [row for row in rows if row.known and row.learn and row.status != "refused"]
    gpus = sorted({row.config.gpu_model for row in usable})
    found = {}
    for gpu in gpus:
        mine = [row for row in usable if row.config.gpu_model == gpu and row.measured]
        others = [row for row in usable if row.config.gpu_model != gpu]
        if len({space.config_hash(row.config) for row in mine}) >= ENOUGH and others:
            found[gpu] = {"runs": len(mine), **curve(evaluate.predictor(others), mine)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--source", choices=sorted(registry.SOURCES))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = measure(registry.parse(args.runs.read_text(encoding="utf-8"), args.source))
    for gpu, curves in found.items():
        for way in ("chosen", "random"):
            cells = "  ".join(
                f"{n}: {100 * e['mape']:.1f}/{100 * e['median']:.1f}" for n, e in curves[way].items()
            )
            print(f"{gpu:22} {curves['runs']:5} runs  {way:7} MAPE/median %  {cells}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
