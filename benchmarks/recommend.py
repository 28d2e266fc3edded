"""How long a recommendation over 72,000 configurations takes, stage by stage, on one core.

python benchmarks/recommend.py [--json OUT]

Enumerated, cut by launch rules and by the memory prior, the rest scored and ranked. Trained on the shipped
history. Aims: below 250 ms once warm, below 300 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable
from importlib.resources import files
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from knowledge.core import evaluate, prior, space
from knowledge.core.columns import Columns, columns
from knowledge.core.learned_predictor import LearnedPredictor
from knowledge.core.predictor import MIN_P_VALID
from knowledge.core.sources import registry
from knowledge.core.types import Config

GPUS = ("A100-SXM4-80GB", "L40S", "H100-SXM5-80GB", "A10G")
COUNTS = ((1, 1), (2, 1), (3, 1), (4, 1), (6, 1), (8, 1), (16, 2), (24, 3), (32, 4))
REPEATS = 5
Found = TypeVar("Found")


def enumerate_all() -> list[Config]:
    """72,000 configurations of one model: 4 GPU models, 9 sizes, 10 batches, 5 lengths, 2 of 20 settings."""
    return [
        Config(
            model_name="llama3.1-8b",
            method=method,
            gpu_model=gpu,
            number_gpus=gpus,
            number_nodes=nodes,
            tokens_per_sample=length,
            per_device_batch_size=batch,
            gradient_accumulation_steps=steps,
            precision="bfloat16",
            quantization="none",
            gradient_checkpointing=checkpointing,
            sharding=sharding,
            network="none" if nodes == 1 else "roce",
        )
        for gpu, (gpus, nodes), batch, length, steps, method, checkpointing, sharding in product(
            GPUS,
            COUNTS,
            [2**power for power in range(10)],
            (512, 1024, 2048, 4096, 8192),
            (1, 2, 4, 8, 16),
            ("full", "lora"),
            (True, False),
            ("ddp", "fsdp"),
        )
    ]


class Stages:
    """Rows and milliseconds of each stage; the fastest of the repeats counts."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.ms: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], Found], rows: Callable[[Found], int]) -> Found:
        """The work's result, its time noted."""
        began = perf_counter()
        found = work()
        took = 1000 * (perf_counter() - began)
        self.rows[name], self.ms[name] = rows(found), min(took, self.ms.get(name, took))
        return found


def recommend(predictor: LearnedPredictor, configs: list[Config], stages: Stages) -> Config:
    """The fastest configuration that is likely to run."""
    allowed = stages.run("rules", lambda: [x for x in configs if space.refused(x) is None], len)
    c = stages.run("columns", lambda: columns(allowed), len)
    fitting = stages.run("memory prior", lambda: np.flatnonzero(prior.fits(c) >= 1), len)
    some = [allowed[row] for row in fitting]
    left: Columns = c.take(fitting)
    scores = stages.run("score", lambda: predictor.score(some, left), lambda found: len(found.rate))
    valid = np.where(scores.p_valid >= MIN_P_VALID, scores.rate, 0.0)
    order = stages.run("rank", lambda: np.argsort(-valid), len)
    return some[int(order[0])]


def measure() -> dict[str, Any]:
    """Stages of a warm recommendation."""
    shipped = files("knowledge") / "data" / "executions.csv"
    predictor = evaluate.predictor(registry.parse(shipped.read_text(encoding="utf-8"), "csv"))
    trained_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    stages = Stages()
    for _ in range(REPEATS):
        configs = stages.run("enumerate", enumerate_all, len)
        recommend(predictor, configs, stages)
    return {
        "rows": stages.rows,
        "ms": {name: round(value, 1) for name, value in stages.ms.items()},
        "total_ms": round(sum(stages.ms.values()), 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_mb_after_training": round(trained_mb),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures = measure()
    for name, rows in figures["rows"].items():
        print(f"{name:14} {rows:8,} rows {figures['ms'][name]:10,.1f} ms")
    print(f"{'total':14} {'':13} {figures['total_ms']:10,.1f} ms, {figures['peak_mb']} MB at the peak")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
