"""The error as a function of the executions learnt from, beside CoTune's.

python benchmarks/knowledge/learning_curve.py RUNS.CSV [--source lfb] [--figure OUT.html] [--json OUT]

A fifth of the configurations is held out; the predictor learns from subsets of the rest, whole
configurations each. CoTune's published figures (Jansen et al., from up to 5,000 executions of
their own): performance error 11 % from 600 and 9.4 % from 5,000; validity error 4.2 % from
5,000.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import plotly.graph_objects as go

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data import splits
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.evaluate import evaluation

CATALOGUE = shipped_catalogue()

SIZES = (100, 300, 600, 1200)
COTUNE = {"throughput_mape": {600: 0.11, 5000: 0.094}, "validity_error": {5000: 0.042}}
LABELS = {"throughput_mape": "throughput, mean absolute error", "validity_error": "validity error"}


def subset(rows: Sequence[Measurement], size: int, seed: int) -> list[Measurement]:
    """About so many rows: whole configurations in random order."""
    hashes = [config_space.config_hash(row.config) for row in rows]
    order = np.random.default_rng(seed).permutation(sorted(set(hashes)))
    place = {name: rank for rank, name in enumerate(order.tolist())}
    chosen = sorted(range(len(rows)), key=lambda row: place[hashes[row]])[:size]
    return [rows[row] for row in sorted(chosen)]


def measure(rows: Sequence[Measurement], seeds: int) -> list[dict[str, Any]]:
    """Figures of each size; below all rows the mean over some random subsets."""
    started = [row for row in rows if row.status != "refused"]
    train, test = next(splits.grouped([config_space.config_hash(row.config) for row in started]))
    known, unseen = [started[row] for row in train], [started[row] for row in test]
    found = []
    for size in [*(size for size in SIZES if size < len(known)), len(known)]:
        repeats = [
            evaluation.metrics(evaluation.predictor(subset(known, size, seed), CATALOGUE), unseen)
            for seed in range(seeds if size < len(known) else 1)
        ]
        names = ("throughput_mape", "throughput_median_ape", "validity_error", "memory_mae", "coverage_80")
        means = {name: round(float(np.mean([one[name] for one in repeats])), 4) for name in names}
        found.append({"rows": size, **means})
        print(json.dumps(found[-1]), flush=True)
    return found


def figure(points: Sequence[dict[str, Any]]) -> go.Figure:
    """Draw errors over executions, both axes logarithmic.

    CoTune's published points are crosses.
    """
    drawn = go.Figure()
    for name, published in COTUNE.items():
        x, y = [point["rows"] for point in points], [point[name] for point in points]
        drawn.add_scatter(x=x, y=y, mode="lines+markers", name=f"Foretune: {LABELS[name]}")
        published_y = list(published.values())
        crosses = {"symbol": "x", "size": 10}
        drawn.add_scatter(
            x=list(published), y=published_y, mode="markers", marker=crosses, name=f"CoTune: {LABELS[name]}"
        )
    drawn.update_xaxes(type="log", title="executions learnt from")
    drawn.update_yaxes(type="log", title="error on unseen configurations", tickformat=".0%")
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--source", choices=sorted(registry.SOURCES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--figure", type=Path, help="a Plotly figure as one HTML page")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    points = measure(
        registry.parse(args.runs.read_text(encoding="utf-8"), CATALOGUE, args.source), args.seeds
    )
    print("| executions | " + " | ".join(LABELS.values()) + " | CoTune |\n| --- | --- | --- | --- |")
    for point in points:
        published = COTUNE["throughput_mape"].get(point["rows"])
        cells = [f"{point[name]:.1%}" for name in LABELS]
        print(f"| {point['rows']:,} | {' | '.join(cells)} | {f'{published:.1%}' if published else ''} |")
    if args.figure:
        figure(points).write_html(args.figure, include_plotlyjs=True)
    if args.json:
        args.json.write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
