"""Trainings for benchmarks/scheduler/reforecast.py, recorded and simulated, with and without disturbances.

`step_times.csv` holds real trainings of the built-in models on a CPU that others used as well: RUN, STEP,
STEPS, SECONDS. Simulated ones have noise that is partly autocorrelated, some a drift, some a slow first step.
Training and test half share no recorded training and no seed.

    .venv-train/bin/python -m benchmarks.scheduler.reforecast_runs FIRST LAST \
        >> benchmarks/scheduler/step_times.csv

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import csv
import math
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_name("step_times.csv")
HALVES = {"training": 0, "test": 1}
DISTURBANCES = ("none", "none", "slow-down", "stall", "speed-up")
SHORTEST = 50  # recorded steps

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Run:
    """Seconds of each step, what was promised of a step and of the start-up, and the start-up itself.

    spread: standard deviation of the logarithm of the promised seconds.
    """

    source: str
    disturbance: str
    seconds: Array
    promised_s: float
    spread: float
    promised_startup_s: float
    startup_s: float
    deadline_s: float


def runs(half: str, count: int) -> Iterator[Run]:
    """So many trainings of one half, a third of them recorded."""
    rng = np.random.default_rng([2026, HALVES[half]])
    kept = recorded(half)
    for index in range(count):
        source = "recorded" if kept and index % 3 == 0 else "simulated"
        steps = kept[rng.integers(len(kept))] if source == "recorded" else simulated(rng)
        yield promised(rng, source, *disturbed(rng, steps), usual_s=float(np.median(steps)))


def recorded(half: str) -> list[Array]:
    """Every other recorded training."""
    found: dict[int, list[float]] = defaultdict(list)
    with RECORDED.open(newline="") as lines:
        for run, _, _, seconds in csv.reader(lines):
            found[int(run)].append(float(seconds))
    mine = [found[run] for run in sorted(found) if run % 2 == HALVES[half]]
    return [np.array(seconds) for seconds in mine if len(seconds) >= SHORTEST]


def simulated(rng: np.random.Generator) -> Array:
    """Seconds of the steps of an undisturbed training, about 1 each."""
    count = int(math.exp(rng.uniform(math.log(20), math.log(3000))))
    size = math.exp(rng.uniform(math.log(0.01), math.log(0.3)))
    kept, shared = rng.choice([0.0, 0.5, 0.9]), rng.uniform()
    slow = np.zeros(count)
    for step, new in enumerate(rng.normal(0, math.sqrt(1 - kept**2), count)):
        slow[step] = (kept * slow[step - 1] if step else 0.0) + new
    drift = rng.choice([0.0, 0.0, 0.05, 0.15]) * np.cumsum(rng.normal(0, 1 / math.sqrt(count), count))
    level = size * (math.sqrt(shared) * rng.normal(0, 1, count) + math.sqrt(1 - shared) * slow) + drift
    level[0] += rng.choice([0.0, 0.3, 1.0])
    return np.exp(level)


def disturbed(rng: np.random.Generator, steps: Array) -> tuple[str, Array]:
    """A slow-down to 1.3 to 3 times, for good or not; a stall of 2 to 30 % of the run; a speed-up."""
    what, steps, count = rng.choice(DISTURBANCES), steps.copy(), len(steps)
    begin = int(rng.uniform() * count)
    if what == "slow-down":
        end = count if rng.uniform() < 0.5 else begin + int(rng.uniform() * (count - begin))
        steps[begin:end] *= rng.uniform(1.3, 3)
    elif what == "speed-up":
        steps[begin:] *= rng.uniform(0.4, 0.8)
    elif what == "stall":
        steps[begin] += steps.sum() * rng.uniform(0.02, 0.3)
    return str(what), steps


def promised(rng: np.random.Generator, source: str, disturbance: str, steps: Array, usual_s: float) -> Run:
    """The training with a promise that is off as much as it says, and a deadline somewhere around its end."""
    spread, startup_s = rng.uniform(0.1, 0.7), usual_s * rng.uniform(1, 20)
    step_s = usual_s * math.exp(rng.normal(0, spread))
    promised_startup_s = startup_s * math.exp(rng.normal(0, 0.3))
    whole_s = promised_startup_s + step_s * len(steps)
    return Run(
        source=source,
        disturbance=disturbance,
        seconds=steps,
        promised_s=step_s,
        spread=spread,
        promised_startup_s=promised_startup_s,
        startup_s=startup_s,
        deadline_s=whole_s * math.exp(rng.uniform(math.log(0.8), math.log(2.5))),
    )


def peaks(rng: np.random.Generator) -> tuple[Array, bool, float]:
    """The peak of memory after each step, whether the training leaks, and how much there is.

    Longer rows turn up by chance, up to the length at which they are cut; one training in four leaks as well.
    """
    steps = int(math.exp(rng.uniform(math.log(50), math.log(3000))))
    rows = np.exp(rng.normal(0, rng.uniform(0.2, 1), (steps, int(rng.choice([1, 2, 4, 8, 32])))))
    longest, share = np.minimum(rows, rng.uniform(1.5, 6)).max(axis=1), rng.uniform(0.1, 0.8)
    need, leaks = 1 - share + share * longest, rng.uniform() < 0.25
    if leaks:
        need += rng.uniform(0.2, 1.5) * need[0] * np.arange(steps) / steps
    so_far = np.maximum.accumulate(need)
    capacity = so_far[steps // 50] * math.exp(rng.uniform(math.log(1.02), math.log(2)))
    return so_far, leaks, float(capacity)


def record(index: int, folder: Path) -> None:
    """Train a built-in model with settings drawn from the index, and print the seconds of its steps."""
    import tests.trainer.runs
    from tests.trainer.runs import PARAMS

    rng = random.Random(index)
    shortest, longest = rng.choice([(30, 60), (20, 200), (40, 400), (100, 120)])
    rows = [{"prompt": "p" * 9, "completion": "x" * rng.randint(shortest, longest)} for _ in range(400)]
    settings = {
        "tuning": rng.choice(["lora", "lora", "full"]),
        "tokens_per_sample": longest + 30,
        "max_steps": rng.choice([60, 100, 150, 200]),
        "per_device_batch_size": rng.choice([1, 2, 4]),
        "learning_rate": 1e-4,
        "seed": index,
    }
    model = rng.choice(["builtin/tiny-llama", "builtin/tiny-qwen"])
    training = tests.trainer.runs.Run(
        folder / str(index), folder / "models", params={**PARAMS, **settings}, model=model
    )
    training.write(rows=rows).start().communicate()
    for event in training.events("step"):
        print(f"{index},{event['step']},{event['total_steps']},{event['step_s']:.4g}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        for number in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
            record(number, Path(home))
