"""Predictions of a series of trainings before they are measured, and afterwards how wrong they were.

python -m benchmarks.trainer.gpu_runs.predicted OUT.csv GPU [--series 4] [--most 60] [--history FILE...]
python -m benchmarks.trainer.gpu_runs.predicted OUT.csv --against MEASURED.csv

Predicted are peaks and rates, by physics alone, by the shipped history with the rows of FILEs, and by the
same if its peaks of our trainer were believed whether or not they were nearer than physics.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.trainer.gpu_runs.measure import CATALOGUE, SERIES
from benchmarks.trainer.gpu_runs.plan import plan
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config
from knowledge.core.evaluate import evaluation
from knowledge.core.model.own_peaks import LEFT_OUT, OwnPeaks, way_of
from knowledge.core.predict.base import BasePredictor, PriorPredictor

SHIPPED = Path(__file__).resolve().parents[3] / "knowledge" / "data" / "executions.csv"
NAMES = (
    *("model_name", "method", "gpu_model", "tokens_per_sample", "per_device_batch_size"),
    *("gradient_accumulation_steps", "precision", "gradient_checkpointing", "lora_r", "target_modules"),
)
WAYS = PHYSICS, HISTORY, BELIEVED = "physics", "history", "believed"
FIGURES = ("rate", "rate_low", "rate_high", "memory", "memory_low", "memory_high", "p_valid")


def predict(given: argparse.Namespace) -> None:
    """Write a row for each planned training."""
    known = [row for path in (SHIPPED, *given.history) for row in registry.parse(path.read_text(), CATALOGUE)]
    learnt = evaluation.predictor([row for row in known if row.learn], CATALOGUE)
    configs = [one.config for one in islice(plan(given.gpu, CATALOGUE, SERIES[given.series]), given.most)]
    everything = OwnPeaks(
        models=frozenset(one.model_name for one in configs),
        gpus=frozenset({given.gpu}),
        ways=frozenset(map(way_of, configs)),
        better=frozenset(LEFT_OUT),
    )
    believing = {kind: replace(one, own_peaks=everything) for kind, one in learnt.knowledge.items()}
    ways: dict[str, BasePredictor] = {
        PHYSICS: PriorPredictor(catalogue=CATALOGUE),
        HISTORY: learnt,
        BELIEVED: replace(learnt, knowledge=believing),
    }
    c = columns(configs, CATALOGUE)
    scores = {way: predictor.score(configs, c) for way, predictor in ways.items()}
    with given.out.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*NAMES, *(f"{way}_{name}" for way in ways for name in FIGURES)])
        for row, config in enumerate(configs):
            stated = stated_by(config).values()
            writer.writerow(
                [*stated, *(f"{getattr(scores[way], n)[row]:.5g}" for way in ways for n in FIGURES)]
            )


def stated_by(config: Config) -> dict[str, str]:
    """The cells that name a configuration, by column."""
    settings = {config_space.column_of(name): value for name, value in asdict(config).items()}
    return {name: cell(settings[name]) for name in NAMES}


def judge(predictions: Path, measured: Path) -> None:
    """Print the errors of the rows that were measured."""
    rows = {_key(row): row for row in _read(predictions)}
    pairs = [(rows[_key(row)], row) for row in _read(measured) if _key(row) in rows]
    ran = [(said, row) for said, row in pairs if row["status"] == "ok"]
    print(f"{len(pairs)} measured, {len(ran)} ran; mean |error|, bias, worst under-prediction, coverage")
    for way in WAYS:
        for kind in ("all", *sorted({_kind(row) for _, row in ran})):
            some = [(said, row) for said, row in ran if kind in ("all", _kind(row))]
            peaks = _errors_in_words(some, f"{way}_memory", "peak_memory_bytes")
            rates = _errors_in_words(some, f"{way}_rate", "tokens_per_second")
            print(f"{way:8} {kind:14} {len(some):3} peaks {peaks}; rates {rates}")
        wrong = [(float(said[f"{way}_p_valid"]) > 0.5) != (row["status"] == "ok") for said, row in pairs]
        print(f"{way:8} wrong about feasibility: {sum(wrong)} of {len(wrong)}")


def _kind(row: dict[str, str]) -> str:
    return row["method"] + (" float32" if row["precision"] == "float32" else "")


def _errors_in_words(pairs: Sequence[tuple[dict[str, str], dict[str, str]]], said: str, measured: str) -> str:
    truth = np.array([float(row[measured]) for _, row in pairs])
    low, value, high = (
        np.array([float(row[f"{said}{end}"]) for row, _ in pairs]) for end in ("_low", "", "_high")
    )
    off: Array = value / truth - 1
    inside = np.mean((low <= truth) & (truth <= high))
    return f"{np.abs(off).mean():.1%} {off.mean():+.1%} {min(off.min(), 0.0):.1%} {inside:.0%}"


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in NAMES)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def cell(value: object) -> str:
    return "" if value is None else str(int(value) if isinstance(value, bool) else value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("gpu", nargs="?", default="")
    parser.add_argument("--series", type=int, default=4)
    parser.add_argument("--most", type=int, default=60, help="trainings")
    parser.add_argument("--history", type=Path, nargs="*", default=[])
    parser.add_argument("--against", type=Path, help="measured rows, which the predictions are judged by")
    given = parser.parse_args()
    if given.against:
        judge(given.out, given.against)
    else:
        predict(given)


if __name__ == "__main__":
    main()
