"""Do similar jobs share model and tuning? On the shipped history.

python benchmarks/knowledge/similar_jobs/found.py [--runs 500] [--past 2000] [--seed 0]

Each of so many runs looks for its five most similar among others drawn at random. Counted is the share of
these five with the same model and tuning, and of runs that find one, where the past holds five at least.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from knowledge.reading.similar import MOST_SIMILAR, Facts, similarities

SHIPPED = Path(__file__).resolve().parents[3] / "knowledge" / "data" / "executions.csv"
NUMBERS = ("tokens_per_sample", "effective_batch_size", "number_gpus")


def history() -> list[Facts]:
    """The facts of all shipped runs."""
    with SHIPPED.open(encoding="utf-8", newline="") as file:
        return [
            {
                "base_model": row["model_name"],
                "tuning": row["method"],
                "precision": row.get("precision"),
                **{name: float(row[name]) for name in NUMBERS if row.get(name)},
            }
            for row in csv.DictReader(file)
        ]


def kind(facts: Facts) -> tuple[object, object]:
    return facts["base_model"], facts["tuning"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--past", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    drawn = random.Random(args.seed).sample(history(), args.runs + args.past)
    runs, past = drawn[: args.runs], drawn[args.runs :]
    began = time.process_time()
    found = similarities(runs, past)
    took_ms = (time.process_time() - began) * 1000
    same = counted = held = asked_about = 0
    for run, alike in zip(runs, found, strict=True):
        if sum(kind(one) == kind(run) for one in past) < MOST_SIMILAR:
            continue
        best = sorted(range(len(past)), key=lambda at: -alike[at])[:MOST_SIMILAR]
        alike_in_kind = sum(kind(past[at]) == kind(run) for at in best)
        same += alike_in_kind
        held += alike_in_kind > 0
        counted += MOST_SIMILAR
        asked_about += 1
    print(f"{held / asked_about:.3f} of {asked_about} runs find one of the same model and tuning")
    print(f"{same / counted:.3f} of the {counted} offered runs are of the same model and tuning")
    print(f"{took_ms:.0f} ms of one core for {len(runs)} runs among {len(past)}")


if __name__ == "__main__":
    main()
