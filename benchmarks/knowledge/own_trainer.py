"""How the shipped predictor does on runs of our trainer that it never saw.

python benchmarks/knowledge/own_trainer.py [docs/measurements/executions-h200.csv]

Learnt from are the shipped executions alone, then half of the models of FILE as own runs as well, which the
other half judges, both ways round. Errors are medians of |predicted / measured - 1|; the bias is the median
of predicted / measured; coverage is that of the 80 % intervals. "Wrong" counts runs of which the predictor
gives the wrong side of a probability of one half. Rows whose samples were of many lengths are told apart.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.domain.arrays import Array
from knowledge.core.evaluate import evaluation
from knowledge.core.predict.base import BasePredictor, PriorPredictor
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor

CATALOGUE = shipped_catalogue()
ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "knowledge" / "data" / "executions.csv"
MEASURED = ROOT / "docs" / "measurements" / "executions-h200.csv"
FULL = 0.99  # of the limit: samples count as whole
HEADER = (
    "rows",
    *("rates", "error of the rate", "bias", "coverage"),
    *("peaks", "error of the peak", "bias", "coverage", "wrong about feasibility"),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """Measured and predicted values of each row; NaN where nothing was measured."""

    rate: Array
    rate_inside: Array
    peak: Array
    peak_inside: Array
    wrong: Array

    def of(self, rows: Array) -> Judged:
        """Of some of the rows."""
        return Judged(*(getattr(self, name)[rows] for name in self.__slots__))


def judged(predictor: BasePredictor, rows: Sequence[Measurement]) -> Judged:
    """Ratios of predicted to measured, and whether the intervals hold them."""
    configs = [row.config for row in rows]
    c = columns(configs, CATALOGUE, [row.padded_tokens for row in rows])
    scores = predictor.score(configs, c)
    ran = np.array([row.status == "ok" for row in rows])
    rate = np.array([row.tokens_per_second or np.nan for row in rows], dtype=float)
    share = np.array([row.peak_memory_fraction or np.nan for row in rows], dtype=float)
    peak = np.where(ran, share * c.memory, np.nan)
    return Judged(
        rate=scores.rate / rate,
        rate_inside=(scores.rate_low <= rate) & (rate <= scores.rate_high),
        peak=scores.memory / peak,
        peak_inside=(scores.memory_low <= peak) & (peak <= scores.memory_high),
        wrong=(scores.p_valid > 0.5) != ran,
    )


def line(name: str, found: Judged) -> str:
    """A row of the table."""
    cells = [str(len(found.wrong))]
    for ratio, inside in ((found.rate, found.rate_inside), (found.peak, found.peak_inside)):
        known = np.isfinite(ratio)
        error, bias = np.median(np.abs(ratio[known] - 1)), np.median(ratio[known])
        cells += [str(int(known.sum())), f"{error:.1%}", f"{bias:.2f}", f"{inside[known].mean():.0%}"]
    return f"| {name} | " + " | ".join([*cells, f"{int(found.wrong.sum())}"]) + " |"


def is_varied(row: Measurement) -> bool:
    """Were samples of many lengths?"""
    return (row.padded_tokens or row.config.tokens_per_sample) < FULL * row.config.tokens_per_sample


KINDS: dict[str, Callable[[Measurement], bool]] = {
    "all": lambda _: True,
    "samples of full length": lambda row: not is_varied(row),
    "of these, 16 bits": lambda row: not is_varied(row) and row.config.precision != "float32",
    "lora": lambda row: not is_varied(row) and row.config.tuning == "lora",
    "qlora": lambda row: not is_varied(row) and row.config.tuning == "qlora",
    "full": lambda row: not is_varied(row) and row.config.tuning == "full",
    "with checkpointing": lambda row: not is_varied(row) and bool(row.config.gradient_checkpointing),
    "without": lambda row: not is_varied(row) and not row.config.gradient_checkpointing,
    "samples of many lengths": is_varied,
}


def taught(predictor: LearnedPredictor, rows: Sequence[Measurement]) -> LearnedPredictor:
    """The predictor with own runs."""
    ended = [row for row in rows if row.learn and row.status in ("ok", "oom")]
    return replace(predictor, observations=Observations.of(ended, CATALOGUE))


def halves(rows: Sequence[Measurement]) -> list[Array]:
    """Two sets of rows: every second model in the order of their names."""
    models = sorted({row.config.model_name for row in rows})
    first = np.array([models.index(row.config.model_name) % 2 == 0 for row in rows])
    return [np.flatnonzero(first), np.flatnonzero(~first)]


def after_half(predictor: LearnedPredictor, rows: Sequence[Measurement]) -> Judged:
    """Each half as predicted once the other one was learnt."""
    parts, order = [], []
    one, other = halves(rows)
    for learnt, predicted_half in ((one, other), (other, one)):
        wise = taught(predictor, [rows[row] for row in learnt])
        parts.append(judged(wise, [rows[row] for row in predicted_half]))
        order += list(predicted_half)
    back = np.argsort(order)
    return Judged(
        *(np.concatenate([getattr(part, name) for part in parts])[back] for name in Judged.__slots__)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=MEASURED)
    parser.add_argument("--rows", action="store_true", help="every row's ratios")
    given = parser.parse_args()
    shipped = registry.parse(SHIPPED.read_text(encoding="utf-8"), CATALOGUE)
    rows = registry.parse(given.file.read_text(encoding="utf-8"), CATALOGUE)
    learnt = evaluation.predictor(shipped, CATALOGUE)
    ways = {
        "shipped": judged(learnt, rows),
        "after the other half": after_half(learnt, rows),
        "physics alone": judged(PriorPredictor(catalogue=CATALOGUE), rows),
    }
    print(f"| predictor, runs | {' | '.join(HEADER)} |\n" + "| --- " * (len(HEADER) + 1) + "|")
    for way, found in ways.items():
        for kind, wanted in KINDS.items():
            some = np.flatnonzero([wanted(row) for row in rows])
            if len(some) and np.isfinite(found.rate[some]).any():
                print(line(f"{way}, {kind}", found.of(some)))
    for place, row in enumerate(rows) if given.rows else ():
        print(_line(row, *(found.of(np.array([place])) for found in ways.values())))


def _line(row: Measurement, *found: Judged) -> str:
    x = row.config
    ratios = ["/".join(f"{float(v[0]):.2f}" for v in (one.rate, one.peak)) for one in found]
    wrong = " ".join("wrong" if one.wrong[0] else "-" for one in found)
    size = f"{x.per_device_batch_size}×{x.tokens_per_sample}×{x.gradient_accumulation_steps}"
    flags = f"{x.precision} {'ckpt' if x.gradient_checkpointing else '-'} {x.target_modules} r{x.lora_r}"
    return f"{x.model_name:34} {x.tuning:5} {size:10} {flags:34} {row.status:4} {' '.join(ratios)} {wrong}"


if __name__ == "__main__":
    main()
