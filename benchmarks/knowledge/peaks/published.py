"""Predictions of trainings that others published, from which nothing was learnt.

    python benchmarks/knowledge/peaks/published.py [docs/measurements/published-peaks.csv]

The shipped executions are learnt from. Errors are means of |predicted / measured - 1|, the bias is the mean
of predicted / measured - 1, worst under is the worst peak that was predicted too low, and coverage is that of
the intervals, which are to hold 80 %. The rows are described in docs/measurements/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import numpy as np

from benchmarks.knowledge import accuracy
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.domain.arrays import Array
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.base import PredictionBatch

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "knowledge" / "data" / "executions.csv"
PUBLISHED = ROOT / "docs" / "measurements" / "published-peaks.csv"
HEADER = (
    *("source, tuning", "rows", "peaks: mean error", "bias", "worst under", "coverage"),
    *("rates: mean error", "bias", "coverage"),
)


def rows_of(path: Path) -> list[Measurement]:
    return registry.parse(path.read_text(encoding="utf-8"), accuracy.CATALOGUE)


def groups(rows: Sequence[Measurement]) -> Mapping[str, Array]:
    """The rows of each source and tuning."""
    names = np.array([f"{row.source}, {row.config.tuning}" for row in rows])
    return {name: np.flatnonzero(names == name) for name in dict.fromkeys(names)}


def cells(measured: Array, told: Array, low: Array, high: Array, *, worst: bool) -> list[str]:
    """The mean error, the bias, the worst error below 0 if asked for, and the coverage."""
    known = np.isfinite(measured)
    if not known.any():
        return ["-"] * (4 if worst else 3)
    errors = (told / measured - 1)[known]
    inside = ((low <= measured) & (measured <= high))[known]
    under = [f"{max(0.0, -errors.min()):.1%}"] if worst else []
    return [f"{np.abs(errors).mean():.1%}", f"{errors.mean():+.1%}", *under, f"{inside.mean():.0%}"]


def line(name: str, some: Array, rows: Sequence[Measurement], told: PredictionBatch, capacity: Array) -> str:
    peaks = np.array([row.peak_memory_fraction or np.nan for row in rows], dtype=float) * capacity
    rates = np.array([row.tokens_per_second or np.nan for row in rows], dtype=float)
    memory = (peaks, told.memory, told.memory_low, told.memory_high)
    rate = (rates, told.rate, told.rate_low, told.rate_high)
    of_peaks = cells(*(values[some] for values in memory), worst=True)
    of_rates = cells(*(values[some] for values in rate), worst=False)
    return f"| {' | '.join([name, str(len(some)), *of_peaks, *of_rates])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("published", type=Path, nargs="?", default=PUBLISHED)
    rows = rows_of(parser.parse_args().published)
    configs = [row.config for row in rows]
    c = columns(configs, accuracy.CATALOGUE)
    told = evaluation.predictor(rows_of(SHIPPED), accuracy.CATALOGUE).score(configs, c)
    print(f"| {' | '.join(HEADER)} |\n" + "| --- " * len(HEADER) + "|")
    for name, some in {**groups(rows), "all": np.arange(len(rows))}.items():
        print(line(name, some, rows, told, c.memory))


if __name__ == "__main__":
    main()
