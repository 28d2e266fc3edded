"""Time of a recommendation over 72,000 configurations, by stage, on one core.

python benchmarks/knowledge/recommend.py [--agreement] [--json OUT]

The configurations are enumerated and cut by launch rules, by the memory prior and by physics;
the rest is scored and ranked by a predictor trained on the shipped history. Aims: below 250 ms
once warm, below 300 MB. With `--agreement` the recommended configurations are compared with
those that scoring every fitting configuration would give. Last, requests for a plain, a pinned
and an impossible recommendation go through the page of a new job.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable, Sized
from importlib.resources import files
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.knowledge.recommend_requests import measure_requests
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import registry
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config, GpuPool
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.base import MIN_P_VALID, PredictionBatch
from knowledge.core.predict.predictor import LearnedPredictor
from knowledge.core.recommend import search
from knowledge.core.recommend.candidates import Candidates

CATALOGUE = shipped_catalogue()

# GPU models with what an hour of one is taken to cost
PRICES = {"A100-SXM4-80GB": 2.0, "L40S": 1.0, "H100-SXM5-80GB": 3.5, "A10G": 0.8}
COUNTS = ((1, 1), (2, 1), (3, 1), (4, 1), (6, 1), (8, 1), (16, 2), (24, 3), (32, 4))
SIZES = [
    (length, 2**power, steps)
    for power, length, steps in product(range(10), (512, 1024, 2048, 4096, 8192), (1, 2, 4, 8, 16))
]
TUNINGS = ("full", "lora")
MODELS = ("llama3.2-1b", "granite-3.1-2b", "mistral-7b-v0.1", "llama3.1-8b", "granite-3.1-8b-instruct",
          "granite-20b-v2", "mixtral-8x7b-instruct-v0.1", "llama3.1-70b")  # fmt: skip
REPEATS = 5
Found = TypeVar("Found", bound=Sized)


def pool(gpu: str) -> GpuPool:
    """Four nodes with eight GPUs each."""
    memory = int(CATALOGUE.gpu(gpu).memory_bytes)
    return GpuPool(gpu_model=gpu, node_sizes=(8,) * 4, memory_bytes=memory, price_per_gpu_hour=PRICES[gpu])


def whole_space(model: str, tunings: tuple[str, ...] = TUNINGS) -> Candidates:
    """72,000 configurations of one model, less those that break a launch rule."""
    found = (
        (
            Config(
                model_name=model,
                tuning=tuning,
                gpu_model=gpu,
                number_gpus=gpus,
                number_nodes=nodes,
                tokens_per_sample=1,
                per_device_batch_size=1,
                precision="bfloat16",
                quantization="none",
                gradient_checkpointing=checkpointing,
                sharding=sharding,
                network="none" if nodes == 1 else "roce",
            ),
            pool(gpu),
            SIZES,
        )
        for gpu, (gpus, nodes), tuning, checkpointing, sharding in product(
            PRICES, COUNTS, tunings, (True, False), ("ddp", "fsdp")
        )
    )
    return Candidates.of(found, CATALOGUE)


class Stages:
    """The rows left by each stage and its milliseconds on one core.

    The fastest repeat counts.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.ms: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], Found]) -> Found:
        """The work's result, its time noted."""
        began = process_time()
        found = work()
        took = 1000 * (process_time() - began)
        self.rows[name], self.ms[name] = len(found), min(took, self.ms.get(name, took))
        return found


def recommended(predictor: LearnedPredictor, model: str, stages: Stages) -> list[int]:
    """The rows that would be offered: one of each bundle."""
    found = stages.run("enumerate, rules", lambda: whole_space(model))
    c = stages.run("columns", lambda: found.columns(CATALOGUE))
    stages.run("memory prior", lambda: search.fitting(c))
    short, of_short = search.shortlisted(found, c, predictor)
    stages.run("and shortlist", lambda: search.shortlisted(found, c, predictor)[0])
    kept: list[PredictionBatch] = []

    def score() -> Array:
        kept.append(predictor.score(short.configs(), of_short))
        return kept[0].rate

    stages.run("score", score)
    allowed = kept[0].p_valid >= MIN_P_VALID
    return stages.run("choose", lambda: search.per_bundle(short, of_short, kept[0], allowed))


def goals(found: Candidates, rate: Array) -> dict[str, Array]:
    """The figure that each goal makes least, per token; shape (n,)."""
    gpus = np.array([kind.number_gpus for kind in found.kinds], dtype=float)[found.kind]
    price = np.array([pool.price_per_gpu_hour for pool in found.pools])[found.kind]
    return {"fastest": 1 / rate, "cheapest": gpus * price / rate, "balanced": np.sqrt(gpus) / rate}


def bests(predictor: LearnedPredictor, found: Candidates, rows: Array) -> dict[str, tuple[Config, float]]:
    """Return the best configuration and its worth by goal, one choice per bundle.

    The result is empty if none of the rows may run.
    """
    some, c = found.take(rows), found.columns(CATALOGUE).take(rows)
    scores = predictor.score(some.configs(), c)
    chosen = search.per_bundle(some, c, scores, scores.p_valid >= MIN_P_VALID)
    if not len(chosen):
        return {}
    best = {name: min(chosen, key=lambda row: worth[row]) for name, worth in goals(some, scores.rate).items()}
    return {
        name: (some.config(row), float(goals(some, scores.rate)[name][row])) for name, row in best.items()
    }


def agreement(predictor: LearnedPredictor) -> dict[str, Any]:
    """Compare the shortlist's recommendation with that from scoring all that fits.

    Jobs that nothing is likely to run, such as all weights of a mixture of experts on one node, do
    not count.
    """
    same, regrets = [], []
    for model, tunings in product(MODELS, (TUNINGS, ("full",), ("lora",))):
        found = whole_space(model, tunings)
        c = found.columns(CATALOGUE)
        everything = bests(predictor, found, search.fitting(c))
        quick = bests(predictor, *_as_rows(search.shortlisted(found, c, predictor)[0]))
        for name, (config, worth) in everything.items():
            same.append(quick[name][0] == config)
            regrets.append(quick[name][1] / worth)
    return {
        "jobs": len(same),
        "same_configuration": round(float(np.mean(same)), 3),
        "median_regret": round(float(np.median(regrets)), 4),
        "regret_95th": round(float(np.quantile(regrets, 0.95)), 4),
        "worst_regret": round(max(regrets), 4),
    }


def _as_rows(found: Candidates) -> tuple[Candidates, Array]:
    return found, np.arange(len(found))


def measure() -> tuple[dict[str, Any], LearnedPredictor]:
    """Stages of a warm recommendation."""
    shipped = files("knowledge") / "data" / "executions.csv"
    predictor = evaluation.predictor(
        registry.parse(shipped.read_text(encoding="utf-8"), CATALOGUE, "csv"), CATALOGUE
    )
    trained_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    stages = Stages()
    for _ in range(REPEATS):
        recommended(predictor, "llama3.1-8b", stages)
    # The shortlist begins with the memory prior, which is timed apart as well.
    total = sum(stages.ms.values()) - stages.ms["memory prior"]
    return {
        "rows": stages.rows,
        "ms": {name: round(value, 1) for name, value in stages.ms.items()},
        "total_ms": round(total, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_mb_after_training": round(trained_mb),
    }, predictor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--agreement", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures, predictor = measure()
    print(f"{'':18} {len(SIZES) * len(PRICES) * len(COUNTS) * 8:8,} rows")
    for name, rows in figures["rows"].items():
        print(f"{name:18} {rows:8,} rows {figures['ms'][name]:10,.1f} ms")
    print(f"{'total':18} {'':13} {figures['total_ms']:10,.1f} ms, {figures['peak_mb']} MB at the peak")
    figures["requests"] = measure_requests(predictor.knowledge)
    for name, request in figures["requests"].items():
        print(f"{name:18} {request['queries']:8,} queries {request['ms']:7,.1f} ms")
    if args.agreement:
        figures["agreement"] = agreement(predictor)
        print(json.dumps(figures["agreement"], indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
