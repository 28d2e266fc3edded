"""The outcome of a simulated attempt.

It is the promise, wrong by as much as its interval admits.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from knowledge.core.domain.types import Interval, Option
from trainer.protocol import Outcome

Z80 = 1.2816  # half the width of an 80 % interval of a normal distribution, in standard deviations
BIAS = 1.03  # the real cluster is a little slower than predicted
ENDS = ((Outcome.ERROR, 0.06), (Outcome.OOM, 0.03), (Outcome.KILLED, 0.02))
REASONS = {
    Outcome.SUCCEEDED: "",
    Outcome.ERROR: "The loss at this step is not a finite number; lower the learning rate.",
    Outcome.OOM: "CUDA ran out of memory.",
    Outcome.KILLED: "The process was killed by signal 9.",
    Outcome.STOPPED: "Stopped with a checkpoint.",
}
MOST_STEPS = 40
WARM_UP = 0.03  # the trainer's, as a share of the steps


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOutcome:
    """The course of a simulated attempt.

    It has the seconds from its start, and the share of its steps that it makes.
    """

    outcome: Outcome
    startup_s: float
    train_s: float
    share: float
    tokens_per_s: float
    memory_bytes: int
    steps: int
    learning: float  # how fast the loss falls
    learning_rate: float  # at its peak

    @property
    def duration_s(self) -> float:
        return self.startup_s + self.train_s * self.share

    @property
    def last_step(self) -> int:
        return max(1, round(self.steps * self.share))


def fate(rng: random.Random, option: Option, learning_rate: float) -> SimulatedOutcome:
    """Draw what becomes of an attempt that runs with this option."""
    rate = _around(rng, option.tokens_per_second) / BIAS
    training_s = max(30.0, option.duration_s.value - option.startup_s)
    slower = option.tokens_per_second.value / rate if option.tokens_per_second.value else 1.0
    outcome, share = _end(rng)
    return SimulatedOutcome(
        outcome=outcome,
        startup_s=max(5.0, option.startup_s * rng.lognormvariate(0, 0.15)),
        train_s=training_s * slower * rng.lognormvariate(0, 0.04),
        share=share,
        tokens_per_s=rate,
        memory_bytes=round(_around(rng, option.peak_memory_bytes)),
        steps=max(1, option.steps),
        learning=rng.uniform(2, 6),
        learning_rate=learning_rate,
    )


def _around(rng: random.Random, promise: Interval) -> float:
    """A measured value: inside the interval in four cases of five."""
    if not promise.value:
        return 1000.0
    if not promise.low or not promise.high:
        return promise.value * rng.lognormvariate(0, 0.1)
    return promise.value * rng.lognormvariate(0, math.log(promise.high / promise.low) / (2 * Z80))


def _end(rng: random.Random) -> tuple[Outcome, float]:
    chance = rng.random()
    for outcome, share in ENDS:
        if chance < share:
            return outcome, rng.uniform(0.02, 0.2 if outcome is Outcome.OOM else 0.9)
        chance -= share
    return Outcome.SUCCEEDED, 1.0


def steps_between(fate: SimulatedOutcome, begin: float, end: float) -> list[int]:
    """Return the steps reported between two shares of the whole training.

    At most about MOST_STEPS steps are reported in all.
    """
    every = max(1, fate.steps // MOST_STEPS)
    reported = [*range(every, fate.steps, every), fate.steps]
    return [step for step in reported if begin * fate.steps < step <= end * fate.steps]


def step_report(rng: random.Random, fate: SimulatedOutcome, step: int) -> dict[str, Any]:
    """The line of progress at a step."""
    done = step / fate.steps
    left, noise = math.exp(-fate.learning * done), rng.gauss(0, 0.03)
    return {
        "step": step,
        "total_steps": fate.steps,
        "loss": 0.9 + 1.6 * left + noise,
        "learning_rate": fate.learning_rate * min(done / WARM_UP, (1 - done) / (1 - WARM_UP)),
        "gradient_norm": 0.3 + 2.2 * left * left + 5 * abs(noise),
        "tokens_per_s": fate.tokens_per_s * rng.uniform(0.97, 1.03),
        "memory_bytes": fate.memory_bytes,
        "step_s": fate.train_s / fate.steps,
    }


def result_report(rng: random.Random, fate: SimulatedOutcome) -> dict[str, Any]:
    """The trainer's report at its end."""
    return {
        "tokens_per_s": fate.tokens_per_s,
        "startup_s": fate.startup_s,
        "train_s": fate.train_s * fate.share,
        "runtime_s": fate.duration_s,
        "peak_memory_bytes": fate.memory_bytes,
        "step": fate.last_step,
        "final_loss": step_report(rng, fate, fate.last_step)["loss"],
        "software": {"demo": "simulated"},
    }
