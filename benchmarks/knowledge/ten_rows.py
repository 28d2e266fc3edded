"""Predictions of a source's other models after ten of its peaks were measured, and whether they are careless.

python benchmarks/knowledge/ten_rows.py HISTORY [--draws 20] [--json OUT]

For each campaign of HISTORY (a source's runs with one software on one GPU model) with 40 peaks and 4 models,
ten rows are drawn, seeded; the models of none of them are asked for: half of the models, where ten rows would
leave next to none. Physics alone predicts, and its random effects are those of the other sources. Errors are
means of |predicted / measured - 1|; gained is the number of configurations that did not run and that get a
probability of 0.9 which they lacked before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.knowledge import accuracy, peak_effects
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array
from knowledge.core.predict.base import MIN_P_VALID, PredictionBatch, PriorPredictor
from knowledge.core.predict.peak_correction import PeakCorrection
from knowledge.core.predict.peak_kernel import PeakEffects, PeakKernel

PRIOR = PriorPredictor(catalogue=accuracy.CATALOGUE)
TEN, ENOUGH, MODELS, LEFT = 10, 40, 4, 5


@dataclass(frozen=True, slots=True)
class Draw:
    """Mean errors of other models before and after ten rows, and what became careless."""

    before: float
    after: float
    failed: int
    gained: int


def draws(rows: Sequence[Measurement], effects: PeakEffects, count: int) -> list[Draw]:
    """Ten rows of a campaign, drawn so many times."""
    peaks = [row for row in rows if row.has_peak]
    broken = [row for row in rows if row.learn_validity and row.status in ("oom", "failed")]
    models = np.array([row.config.model_name for row in peaks])
    found = []
    for seed in range(count):
        random = np.random.default_rng(seed)
        order = random.permutation(len(peaks))
        ten = order[:TEN]
        if np.sum(~np.isin(models, models[ten])) < LEFT:
            half = random.permutation(np.unique(models))[: len(np.unique(models)) // 2]
            ten = order[np.isin(models[order], half)][:TEN]
        others = [row for row in peaks if row.config.model_name not in models[ten]]
        found.append(_draw([peaks[row] for row in ten], others, broken, effects))
    return found


def _draw(
    ten: Sequence[Measurement],
    others: Sequence[Measurement],
    broken: Sequence[Measurement],
    effects: PeakEffects,
) -> Draw:
    correction = PeakCorrection.of(ten, *_predicted(ten, effects), by_physics=True, learnt_from=False)
    held_out = [*others, *broken]
    c, before, kernel = _predicted(held_out, effects)
    after = before if correction is None else correction.applied(before, kernel, c.memory)
    real = np.array([row.peak_memory_fraction or np.nan for row in others], dtype=float)
    risky = slice(len(others), None)
    gained = (after.p_valid >= MIN_P_VALID) & (before.p_valid < MIN_P_VALID)
    worse, better = _error(before, c, real), _error(after, c, real)
    return Draw(worse, better, len(broken), int(gained[risky].sum()))


def _predicted(
    rows: Sequence[Measurement], effects: PeakEffects
) -> tuple[ConfigTable, PredictionBatch, PeakKernel]:
    configs = [row.config for row in rows]
    c = columns(configs, accuracy.CATALOGUE, [row.padded_tokens for row in rows])
    return c, PRIOR.score(configs, c), PeakKernel.of(configs, c, effects=effects)


def _error(scores: PredictionBatch, c: ConfigTable, real: Array) -> float:
    shares = np.minimum(scores.memory / c.memory, 1.0)[: len(real)]
    return float(np.mean(np.abs(shares / real - 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    known, found = peak_effects.read(args.history), {}
    print(
        "| source, GPU, software | peaks | before | after | less | better draws | gained |\n"
        + "| --- " * 7
        + "|"
    )
    for source, rows in known.items():
        others = {name: theirs for name, theirs in known.items() if name != source}
        effects = peak_effects.estimated(others)
        for name, of_one in peak_effects.campaigns(rows).items():
            models = {row.config.model_name for row in of_one if row.has_peak}
            peaks = sum(row.has_peak for row in of_one)
            if peaks >= ENOUGH and len(models) >= MODELS:
                drawn = draws(of_one, effects, args.draws)
                found[f"{source}, {name}"] = _row(f"{source}, {name}", peaks, drawn)
    _row("all", sum(map(len, known.values())), [one for drawn in found.values() for one in drawn])
    if args.json:
        table = {name: [[one.before, one.after] for one in drawn] for name, drawn in found.items()}
        args.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _row(name: str, peaks: int, drawn: list[Draw]) -> list[Draw]:
    before, after = (float(np.mean([getattr(one, what) for one in drawn])) for what in ("before", "after"))
    better = sum(one.after < one.before for one in drawn)
    gained, failed = sum(one.gained for one in drawn), sum(one.failed for one in drawn)
    cells = (f"{before:.1%}", f"{after:.1%}", f"{1 - after / before:.0%}", f"{better} of {len(drawn)}")
    print(f"| {name} | {peaks} | {' | '.join(cells)} | {gained} of {failed} |", flush=True)
    return drawn


if __name__ == "__main__":
    main()
