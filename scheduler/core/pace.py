"""How fast a training goes.

The promised seconds of a step are corrected by every report of measured ones. The logarithm of a step's
seconds is a level that drifts while the work proceeds and is seen through noise; a Kalman filter follows
it from the promise on (docs/adr/0037). The noise is that of whole reports, so that steps of a report that
are slow together need no model of their own. The constants are fitted on the training half of
`benchmarks/scheduler/reforecast.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from knowledge.core.domain.types import Interval

DRIFT = 0.06  # variance that the level gains over a whole job
NOISE = 0.015  # variance of a step's logarithm before any was measured
NOISE_WEIGHT = 4.0  # of how many reports that stands for the mean
LONGEST_MEMORY = 50.0  # reports over which the noise is averaged
WARM_UP = 10.0  # how much noisier the first step is: it allocates, compiles and fills caches
SURPRISE = 2.5  # standard deviations by which a report may move the level; a second one in a row by any
DOUBT = 0.35  # how uncertain a surprise makes the level, at most
UNKNOWN = 25.0  # variance of a level of which nothing is known
BELOW, ABOVE = 1.8, 2.7  # standard deviations that hold 80 %: jobs are disturbed now and then, mostly slowed
BLOCK_MEMORY = 5.0  # reports over which their numbers of steps are averaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The belief about the seconds of a step after `step` steps of the job.

    level, variance: of their logarithm. excess: by how much the last report surprised. noise: variance of one
    step around the level, a mean of `weight` reports. block: steps of a report. trained_s, saved_s: of this
    attempt. evaluated_s: of one evaluation.
    """

    step: int
    level: float
    variance: float
    excess: float = 0.0
    noise: float = NOISE
    weight: float = NOISE_WEIGHT
    block: float = 1.0
    trained_s: float = 0.0
    saved_s: float = 0.0
    evaluated_s: float | None = None

    @property
    def known(self) -> bool:
        """Was a pace promised or measured?"""
        return self.variance < UNKNOWN

    @property
    def step_s(self) -> float:
        """Expected mean seconds of the steps to come."""
        return math.exp(self.level + self.noise / self.block / 2)


def promised_pace(step_s: Interval | None, step: int = 0) -> Pace:
    """Return the pace before any step of an attempt.

    It begins after `step`; None: nothing was promised.
    """
    if step_s is None or not step_s.value > 0:
        return Pace(step=step, level=0.0, variance=UNKNOWN)
    spread = math.log(step_s.high / step_s.low) / (BELOW + ABOVE) if step_s.low and step_s.high else 1.0
    return Pace(step=step, level=math.log(step_s.value), variance=spread**2)


def measured_pace(pace: Pace, *, step: int, total: int, step_s: float, saved_s: float | None = None) -> Pace:
    """Return the pace after a report.

    The steps after `pace.step`, up to `step`, took `step_s` each.

    saved_s: what the attempt spent on checkpoints until now.
    """
    count, first = step - pace.step, not pace.trained_s
    if count <= 0 or not step_s > 0:
        return pace
    level_spread = pace.variance + DRIFT * count / max(total, step)
    noise = pace.noise / count * (WARM_UP if first else 1.0)
    spread = level_spread + noise
    off, most = math.log(step_s) - pace.level, SURPRISE * math.sqrt(spread)
    excess = off - max(-most, min(off, most))
    believed = off if excess * pace.excess > 0 else off - excess
    gain = level_spread / spread
    evidence = 0.0 if first else noise / spread  # how much the report says of the noise
    weight = min(pace.weight + evidence, LONGEST_MEMORY)
    return replace(
        pace,
        step=step,
        level=pace.level + gain * believed,
        variance=(1 - gain) * level_spread + min(abs(excess), DOUBT) ** 2,
        excess=excess,
        noise=pace.noise * (1 + evidence * ((off - excess) ** 2 / spread - 1) / weight),
        weight=weight,
        block=float(count) if first else pace.block + (count - pace.block) / BLOCK_MEMORY,
        trained_s=pace.trained_s + count * step_s,
        saved_s=pace.saved_s if saved_s is None else saved_s,
    )


def training_left(pace: Pace, total: int) -> Interval:
    """Seconds of training left, with the bounds of an 80 % interval."""
    left = total - pace.step
    if left <= 0:
        return Interval(0.0, 0.0, 0.0)
    spread = math.sqrt(pace.variance + DRIFT * left / total / 3 + pace.noise / left)
    value = left * pace.step_s
    return Interval(value, value * math.exp(-BELOW * spread), value * math.exp(ABOVE * spread))
