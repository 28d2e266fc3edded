"""Time left of a running attempt, by its promise and its pace.

It consists of start-up, steps, evaluation and saving.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from knowledge.core.domain.catalogue import Model
from knowledge.core.domain.types import Interval, Option
from knowledge.core.recommend.duration import NORMAL_80, STARTUP_FACTOR, parts
from scheduler.core.pace import Pace, promised_pace, training_left

NORMAL_95 = 1.645  # standard deviations below which 95 % of a normal distribution lie
ASKED_IN_S = 600
LATENCY_S = 5.0  # how long a report may be on its way


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The steps of a job, and what an attempt does besides them.

    The latter are promised seconds.

    evaluation_s: of one evaluation; there are so many in the whole job.
    """

    total_steps: int
    startup_s: float
    saving_s: float
    evaluation_s: float = 0.0
    evaluations: int = 0
    steps_per_epoch: float | None = None

    def evaluations_left(self, step: int) -> int:
        """How many evaluations are left.

        One follows each epoch, the last one the last step; it is over when the next step was reported.
        """
        over = int(max(0, step - 1) / self.steps_per_epoch) if self.steps_per_epoch else 0
        return max(0, self.evaluations - over)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """The work that an attempt has left, as known at the last report.

    `heard_at`: seconds since 1970.
    """

    work: Work
    pace: Pace
    heard_at: float

    def left(self, now: float) -> Interval | None:
        """Seconds until it ends; None where nothing is known."""
        return time_left(self.work, self.pace, silent_s=max(0.0, now - self.heard_at))

    def as_json(self) -> dict[str, Any]:
        """Plain values, to be stored with the attempt."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Remaining:
        """The inverse of `as_json`."""
        return cls(work=Work(**raw["work"]), pace=Pace(**raw["pace"]), heard_at=raw["heard_at"])


def promised_remaining(
    promised: Option,
    model: Model | None,
    *,
    began_at: float,
    step: int = 0,
    total_steps: int | None = None,
    rows: float | None = None,
) -> Remaining:
    """Return what an attempt after `step` has to do, by its promise.

    `rows`: of its data, once told.

    model: None if it is not known now.
    """
    predicted, steps = parts(promised, model), total_steps or promised.steps
    epoch = rows / promised.config.effective_batch_size if rows else None
    evaluations = math.ceil(steps / epoch) if epoch else 1
    work = Work(
        total_steps=steps,
        startup_s=predicted.startup_s,
        saving_s=predicted.saving_s,
        evaluation_s=predicted.evaluation_s / evaluations,
        evaluations=evaluations if predicted.evaluation_s else 0,
        steps_per_epoch=epoch,
    )
    return Remaining(work=work, pace=promised_pace(predicted.step_s, step), heard_at=began_at)


def times_slower(promised: Option, remaining: Remaining) -> float | None:
    """How many times longer than promised the job runs, start-up apart.

    None before a step was measured.
    """
    step_s, run_s = parts(promised, None).step_s, promised.duration_s.value - promised.startup_s
    if step_s is None or run_s <= 0 or not remaining.pace.trained_s:
        return None
    return max(1e-3, 1.0 + promised.steps * (remaining.pace.step_s - step_s.value) / run_s)


def corrected(promised: Option, remaining: Remaining, *, so_far_s: float, now: float) -> Option:
    """Return the promise of a running attempt with what was measured.

    That is its duration, its speed and its cost.

    so_far_s: how long the job ran until now.
    """
    left, predicted = remaining.left(now), parts(promised, None)
    if left is None or predicted.step_s is None or not remaining.pace.trained_s:
        return promised
    duration = Interval(*(so_far_s + (bound or 0.0) for bound in (left.value, left.low, left.high)))
    training = training_left(remaining.pace, remaining.work.total_steps)
    slower = remaining.pace.step_s / predicted.step_s.value
    rate = promised.tokens_per_second.value / slower
    faster, slowest = (
        rate * training.value / bound if bound else rate for bound in (training.low, training.high)
    )
    price = promised.cost.value / promised.duration_s.value
    return replace(
        promised,
        duration_s=duration,
        tokens_per_second=Interval(rate, slowest, faster),
        cost=duration.scaled(price),
    )


def time_left(work: Work, pace: Pace, *, silent_s: float) -> Interval | None:
    """Return the seconds until the attempt ends; None if nothing is known.

    The bounds are those of an 80 % interval.

    silent_s: since the last report, or since the start while there was none. The work that a training can
    have done unheard is what it does between two reports: a silence beyond that takes nothing off the time
    left, and may last as long again.
    """
    if not pace.known:
        return None
    training = training_left(pace, work.total_steps)
    startup_s = 0.0 if pace.trained_s else work.startup_s
    evaluation_s = work.evaluation_s if pace.evaluated_s is None else pace.evaluated_s
    saving = pace.saved_s / pace.trained_s if pace.trained_s else 0.0
    beside_s = startup_s + work.evaluations_left(pace.step) * evaluation_s + work.saving_s
    unheard_s = startup_s or LATENCY_S + _until_next_report_s(work, pace, evaluation_s)
    value = training.value * (1 + saving) + beside_s
    done_s = min(silent_s, unheard_s, value)
    return _around(training, saving, startup_s, value, done_s, stalled_s=max(0.0, silent_s - unheard_s))


def _until_next_report_s(work: Work, pace: Pace, evaluation_s: float) -> float:
    if pace.step >= work.total_steps:
        return work.evaluations_left(pace.step) * evaluation_s + work.saving_s
    due = work.evaluations_left(pace.step) - work.evaluations_left(pace.step + 1)
    return pace.block * pace.step_s + due * evaluation_s


def _around(
    training: Interval, saving: float, startup_s: float, value: float, done_s: float, *, stalled_s: float
) -> Interval:
    """Return the value less what is done, with bounds.

    Training and start-up are off independently of each other.
    """
    low, high = training.low or 0.0, training.high or 0.0
    below = math.hypot((training.value - low) * (1 + saving), startup_s * (1 - 1 / STARTUP_FACTOR))
    above = math.hypot((high - training.value) * (1 + saving), startup_s * (STARTUP_FACTOR - 1))
    return Interval(
        value - done_s, max(0.0, value - done_s - below), max(0.0, value - done_s) + above + stalled_s
    )


def asked_run_s(left: Interval) -> float:
    """Return for how long to ask an engine for resources, in whole ten minutes.

    One attempt in twenty takes longer than that; half of a normal distribution of the logarithm lies above
    the value.
    """
    spread = math.log(left.high / left.value) / NORMAL_80 if left.high and left.value > 0 else 0.0
    return ASKED_IN_S * max(1, math.ceil(left.value * math.exp(NORMAL_95 * spread) / ASKED_IN_S))


def chance_beyond(left: Interval, limit: float) -> float:
    """Return how likely the true value lies above the limit.

    Its logarithm has half of a normal distribution on either side.
    """
    if not left.value > 0 or left.low is None or left.high is None:
        return float(left.value > limit)
    if limit <= 0:
        return 1.0
    bound = left.high if limit > left.value else max(left.low, left.value * 1e-6)
    spread = abs(math.log(bound / left.value)) / NORMAL_80
    off = math.log(limit) - math.log(left.value)  # a quotient of tiny numbers may be 0
    if not off or not spread:
        return 0.5 if not off else float(off < 0)
    return 0.5 * math.erfc(off / spread / math.sqrt(2))
