"""The part of a peak's error that any predictor must leave, beside the error of today, in seconds.

    python benchmarks/knowledge/peaks/floors.py HISTORY [--rows]

HISTORY is the folder that benchmarks/knowledge/accuracy.py takes. Runs that are equal still differ: runs of
one configuration (software, protocol and variant of checkpointing aside, which a user does not choose), and
runs that no published column tells apart. A predictor that knows all rows and says one number for equal runs
errs by the floor in the mean; rows without equals count as exact. "Others" is the mean error, on rows with
equals, of the mean of the other ones: as much as repeating a run tells. Beside them stand the errors of the
way that answers in a split (`left_out.py`), of all rows and without those that other runs contradict: a peak
is contradicted if a run with longer samples or more of them, else equal, took less than 85 % of it. `--rows`
lists these.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import numpy as np

from benchmarks.knowledge import accuracy
from benchmarks.knowledge.peaks import left_out
from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array, Mask

CONTRADICTED = 0.85  # of a peak: a run of more tokens that took less contradicts it
HEADER = (
    "source, what is unseen", "peaks", "with runs of the configuration", "floor", "others", "not told apart",
    "floor", "others", "by", "error", "worst under", "contradicted", "error without", "worst under",
)  # fmt: skip
Key = Callable[[Measurement], Hashable]


def configuration(row: Measurement) -> Hashable:
    return config_space.config_hash(accuracy.CATALOGUE.canonical(row.config))


def every_column(row: Measurement) -> Hashable:
    return repr((accuracy.CATALOGUE.canonical(row.config), row.padded_tokens))


def but_for_tokens(row: Measurement) -> Hashable:
    return repr(replace(row.config, tokens_per_sample=1, per_device_batch_size=1))


def groups(rows: Sequence[Measurement], key: Key) -> list[list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        found[key(row)].append(place)
    return [places for places in found.values() if len(places) > 1]


def least(peaks: Array) -> float:
    """The least sum of errors that one number leaves, as shares of what was measured."""
    return float(min(np.abs(number / peaks - 1).sum() for number in peaks))


def floor(rows: Sequence[Measurement], key: Key) -> str:
    """Cells: rows with equals, the floor of all rows, the error of the others' mean."""
    peaks = np.array([row.peak_memory_fraction for row in rows], dtype=float)
    alike = [peaks[places] for places in groups(rows, key)]
    if not alike:
        return "0 | 0.0% | -"
    others = [np.abs((some.sum() - some) / (len(some) - 1) / some - 1) for some in alike]
    error = np.concatenate(others)
    return f"{len(error)} | {sum(map(least, alike)) / len(rows):.1%} | {error.mean():.1%}"


def contradicted(rows: Sequence[Measurement]) -> Mask:
    """Rows whose peak some run exceeds by its tokens, but not by its peak."""
    found = np.zeros(len(rows), dtype=bool)
    for places in groups(rows, but_for_tokens):
        sizes = np.array(
            [(rows[x].config.tokens_per_sample, rows[x].config.per_device_batch_size) for x in places]
        )
        peaks = np.array([rows[x].peak_memory_fraction for x in places], dtype=float)
        larger = (sizes[None] >= sizes[:, None]).all(axis=2) & (sizes[None] != sizes[:, None]).any(axis=2)
        found[places] = (larger & (peaks[None] < CONTRADICTED * peaks[:, None])).any(axis=1)
    return found


def answer(rows: Sequence[Measurement], split: accuracy.Split) -> tuple[str, Array]:
    """The way that answers in the split, and the errors of rows with a peak, NaN if not left out."""
    if split.source == accuracy.ALL:
        return "stated", left_out.by_physics(list(rows))
    way = "fitted" if split.unseen not in ("configurations", "models") else "trees"
    return way, left_out.by_row(list(rows), split)[way]


def cells(name: str, way: str, rows: Sequence[Measurement], errors: Array) -> str:
    doubtful = contradicted(rows)
    judged = [errors, errors[~doubtful]]
    told = [f"{np.abs(some).mean():.1%} | {max(0.0, -some.min()):.1%}" for some in judged]
    floors = f"{floor(rows, configuration)} | {floor(rows, every_column)}"
    return f"| {name} | {len(rows)} | {floors} | {way} | {told[0]} | {doubtful.sum()} | {told[1]} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--rows", action="store_true", help="list contradicted rows")
    args = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n{'| --- ' * len(HEADER)}|")
    for source in left_out.SOURCES:
        text = (args.history / source / accuracy.FILES[source]).read_text(encoding="utf-8")
        rows = registry.parse(text, accuracy.CATALOGUE)
        known = [row for row in rows if left_out.has_known_peak(row)]
        whole = accuracy.Split(accuracy.ALL, source, accuracy.one_source(source))
        own = [x for x in accuracy.all_splits(sorted({row.config.gpu_model for row in known}))
               if x.source == source and "after" not in x.unseen]  # fmt: skip
        for split in [whole, *own]:
            way, errors = answer(rows, split)
            judged = np.flatnonzero(np.isfinite(errors))
            name = f"{split.source}, {split.unseen}"
            print(cells(name, way, [known[row] for row in judged], errors[judged]), flush=True)
        for row in np.flatnonzero(contradicted(known)) if args.rows else ():
            print(f"- contradicted: {known[row].config}, {known[row].peak_memory_fraction:.1%}")


if __name__ == "__main__":
    main()
