"""How far apart the terms of memory lie between sources and between models.

python benchmarks/knowledge/peak_effects.py HISTORY [--without SOURCE]

Standard deviations of the random effects of `knowledge/core/predict/peak_kernel.py`, by maximum likelihood
over the campaigns of HISTORY (a source's runs with one software on one GPU model; accuracy.py has the files).
Physics alone predicts; 30 runs of a campaign count.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy.optimize import minimize

from benchmarks.knowledge import accuracy
from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import registry
from knowledge.core.domain.arrays import Array
from knowledge.core.predict.peak_kernel import EFFECTS, PeakEffects, PeakKernel, TermSpread

SOURCES = (accuracy.LFB, accuracy.FMA, accuracy.LITGPT)
RUNS = 30  # of a campaign: the likelihood of more takes long and tells the same campaign
FEWEST = 6
USUAL, DOUBT = 0.15, 1.0  # a weak prior of the deviations: median, and spread of its logarithm
LOWEST, HIGHEST = 0.005, 1.0
NAMES = tuple(EFFECTS.terms)
UNIT = PeakEffects(terms=dict.fromkeys(NAMES, TermSpread(1.0, 1.0)), alike=1.0, kind=1.0, run=1.0)


@dataclass(frozen=True, slots=True)
class Campaign:
    """Runs with a peak. kernel: with all deviations 1. errors: ln(measured / physics), (n,)."""

    kernel: PeakKernel
    errors: Array

    @classmethod
    def of(cls, rows: Sequence[Measurement]) -> Campaign:
        configs = [row.config for row in rows]
        c = columns(configs, accuracy.CATALOGUE, [row.padded_tokens for row in rows])
        peaks = np.array([row.peak_memory_fraction or np.nan for row in rows], dtype=float) * c.memory
        errors = np.log(peaks / np.minimum(cost_model.memory(c).total, c.memory))
        return cls(PeakKernel.of(configs, c, effects=UNIT), errors)


def read(history: Path) -> dict[str, list[Measurement]]:
    """The rows of each source whose model and GPU are known."""
    found = {}
    for source in SOURCES:
        text = (history / source / accuracy.FILES[source]).read_text(encoding="utf-8")
        found[source] = known_rows(registry.parse(text, accuracy.CATALOGUE), accuracy.CATALOGUE)
    return found


def campaigns(rows: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """The rows of a source by GPU model and software."""
    found: dict[str, list[Measurement]] = {}
    for row in rows:
        found.setdefault(f"{row.config.gpu_model} {row.config.software or ''}".strip(), []).append(row)
    return found


def estimated(sources: Mapping[str, Sequence[Measurement]]) -> PeakEffects:
    """The deviations that make the sources' peaks likeliest."""
    random = np.random.default_rng(0)
    chosen = []
    for rows in sources.values():
        for of_one in campaigns([row for row in rows if row.has_peak]).values():
            if len(of_one) >= FEWEST:
                chosen.append(Campaign.of([of_one[row] for row in random.permutation(len(of_one))[:RUNS]]))
    start = np.full(2 * len(NAMES) + 3, np.log(USUAL))
    bounds = [(np.log(LOWEST), np.log(HIGHEST))] * len(start)
    found = minimize(_unlikely, start, args=(chosen,), bounds=bounds, options={"maxiter": 25})
    return _effects(np.exp(found.x))


def _effects(deviations: Array) -> PeakEffects:
    of_terms = deviations[:-3].reshape(2, -1).T
    alike, kind, run = map(float, deviations[-3:])
    spreads = {name: TermSpread(*map(float, pair)) for name, pair in zip(NAMES, of_terms, strict=True)}
    return PeakEffects(spreads, alike, kind, run)


def _unlikely(logs: Array, chosen: Sequence[Campaign]) -> float:
    """The negative logarithm of the likelihood, and of the weak prior."""
    deviations, total = np.exp(logs), float(0.5 * np.sum(((logs - np.log(USUAL)) / DOUBT) ** 2))
    of_source, of_model = deviations[:-3].reshape(2, -1)
    alike, kind, run = deviations[-3:]
    for campaign in chosen:
        kernel = replace(
            campaign.kernel,
            of_source=campaign.kernel.of_source * np.append(of_source, alike),
            of_model=campaign.kernel.of_model * of_model,
            of_kind=campaign.kernel.of_kind * kind**2,
        )
        root = np.linalg.cholesky(kernel.covariance(kernel) + run**2 * np.eye(len(campaign.errors)))
        whitened = np.linalg.solve(root, campaign.errors)
        total += float(0.5 * whitened @ whitened + np.log(np.diag(root)).sum())
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--without", choices=SOURCES)
    args = parser.parse_args()
    found = estimated({name: rows for name, rows in read(args.history).items() if name != args.without})
    print("| term | between sources | between models |\n| --- | --- | --- |")
    for name, (source, model) in found.terms.items():
        print(f"| {name} | {source:.2f} | {model:.2f} |")
    print(f"alike {found.alike:.2f}, kind {found.kind:.2f}, run {found.run:.2f}")


if __name__ == "__main__":
    main()
