"""The error of physics alone, without trees, on unseen models and GPUs.

python benchmarks/knowledge/physics.py HISTORY [--only TEXT] [--json OUT]

The weights of physics are not fitted to them. HISTORY is the folder that benchmarks/knowledge/accuracy.py
takes. Each model or GPU model is left out by itself and its runs are predicted with the parts
of a step, and of a peak, fitted to all others. Figures are means and medians over runs: of a
rate in % of the measured one, of a peak in points of the GPU's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.knowledge.accuracy import FMA, LFB, MLPERF
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.analytic.peak_memory import PeakMemory
from knowledge.core.analytic.step_time import StepTime
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import registry
from knowledge.core.data.splits import Fold
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array

CATALOGUE = shipped_catalogue()

ENOUGH = 40  # rows of the others; below, the weights stay what the prior states
CELLS = tuple(f"{what}_{figure}" for what in ("rate", "peak") for figure in ("rows", "mean", "median"))
Figures = dict[str, float]
Key = Callable[[Measurement], str]


class Physics(Protocol):
    """The methods that StepTime and PeakMemory have in common."""

    def fit(self, c: ConfigTable, measured: Array, groups: Sequence[str], /) -> Physics: ...

    def observed(self, c: ConfigTable) -> Array: ...


@dataclass(frozen=True, slots=True)
class Split:
    """The rows of a source that are left out, one value of `key` after the other."""

    source: str
    unseen: str
    key: Key


def by_model(row: Measurement) -> str:
    return row.config.model_name


def by_gpu(row: Measurement) -> str:
    return row.config.gpu_model


SPLITS = (
    Split(LFB, "models", by_model),
    Split(LFB, "GPUs", by_gpu),
    Split(FMA, "models", by_model),
    Split(MLPERF, "accelerators", by_gpu),
)


def one_out(rows: Sequence[Measurement], key: Key) -> Iterator[Fold]:
    """Each value of `key` in turn, where enough rows have another."""
    values = np.array([key(row) for row in rows])
    for value in sorted(set(values)):
        others = np.flatnonzero(values != value)
        if len(others) >= ENOUGH:
            yield others, np.flatnonzero(values == value)


def leave_one_out(
    rows: Sequence[Measurement], key: Key, physics: Callable[[], Physics], measured: Array
) -> Array:
    """Return the prediction for each row by physics fitted to the others.

    The shape is (n,); a row is nan where there are no others.
    """
    c = columns([row.config for row in rows], CATALOGUE, [row.padded_tokens for row in rows])
    hashes = [config_space.config_hash(row.config) for row in rows]
    observed = np.full(len(rows), np.nan)
    for train, test in one_out(rows, key):
        fitted = physics().fit(c.take(train), measured[train], [hashes[row] for row in train])
        observed[test] = fitted.observed(c.take(test))
    return observed


def rates(rows: Sequence[Measurement], key: Key) -> Figures:
    """Errors of tokens/s, as shares of the measured rate."""
    rated = [row for row in known_rows(rows, CATALOGUE) if row.measured]
    measured = np.array([row.tokens_per_second for row in rated], dtype=float)
    return figures("rate", np.abs(leave_one_out(rated, key, StepTime, measured) / measured - 1))


def peaks(rows: Sequence[Measurement], key: Key) -> Figures:
    """Errors of peak memory, as shares of what the GPU has."""
    known = [row for row in known_rows(rows, CATALOGUE) if row.measured and row.peak_memory_fraction]
    capacity = columns([row.config for row in known], CATALOGUE).memory
    shares = np.array([row.peak_memory_fraction for row in known], dtype=float)
    return figures(
        "peak", np.abs(leave_one_out(known, key, PeakMemory, shares * capacity) / capacity - shares)
    )


def figures(name: str, errors: Array) -> Figures:
    """Return the number of judged rows with the mean and median of their errors.

    The result is empty if no row was judged.
    """
    judged = errors[np.isfinite(errors)]
    if not len(judged):
        return {}
    return {
        f"{name}_rows": len(judged),
        f"{name}_mean": float(judged.mean()),
        f"{name}_median": float(np.median(judged)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--only", default="", help="splits whose name contains this")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = {}
    print("| source, what is left out | rates | mean, % | median | peaks | mean, points | median, points |")
    print("| --- " * (1 + len(CELLS)) + "|")
    for split in SPLITS:
        name = f"{split.source}, {split.unseen}"
        if args.only in name:
            text = (args.history / split.source / "runs.csv").read_text(encoding="utf-8")
            rows = registry.parse(text, CATALOGUE)
            found[name] = rates(rows, split.key) | peaks(rows, split.key)
            print(f"| {name} | {_cells(found[name])} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _cells(found: Figures) -> str:
    return " | ".join(_cell(name, found.get(name)) for name in CELLS)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if name.endswith("rows") else f"{100 * value:.1f}"


if __name__ == "__main__":
    main()
