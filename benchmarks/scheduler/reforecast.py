"""Is the time left of a running job right, and may its warnings be believed?

    python -m benchmarks.scheduler.reforecast [--runs 3000] [--half test]

Plays recorded and simulated trainings (`reforecast_runs.py`) report by report, as the portal hears them,
and prints

- at 5, 20, 50 and 80 % of the steps: how many ends lie inside the 80 % interval (aim 75 to 88 %), and the
  median error of the time left, beside that of the promise and of "steps left x seconds of the last step";
- of two readings: how often the later one lies inside the earlier one's interval;
- of warnings that a job will be late, each the first of its job: how many were right (aim 90 %), how many of
  the late jobs were warned of, and how long before the deadline, as a share of the job's duration;
- the same of warnings that a job will cost more than its budget;
- the same of warnings that memory will not last, on simulated trainings, some of which leak.

The constants of `scheduler/core/pace.py` were fitted with `--half training`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from benchmarks.scheduler.reforecast_runs import HALVES, Array, Run, peaks, runs
from knowledge.core.domain.types import Interval
from knowledge.core.recommend.duration import NORMAL_80
from scheduler.core.job_warnings import PARTS, Outlook, PeakGrowth, Risk, chances, likely
from scheduler.core.pace import Pace, measured_pace, promised_pace
from scheduler.core.remaining_time import Work, time_left

MARKS = (0.05, 0.2, 0.5, 0.8)
LINES = 150  # of a long run
EVERY_STEP_UP_TO = 200
FEWEST_STEPS, NEARLY_FULL = 20, 0.8  # as scheduler/services/sync/warnings.py has them


@dataclass(frozen=True, slots=True)
class Reading:
    """The forecast of the time left after a share of the steps, and what became of it."""

    share: float
    at_s: float
    left: Interval
    true_s: float
    promise_s: float
    last_step_s: float
    pace: Pace


def readings(run: Run) -> Iterator[Reading]:
    """A reading after each report: after each step of a short training, after blocks of a long one."""
    total = len(run.seconds)
    ends = run.startup_s + np.concatenate([[0.0], np.cumsum(run.seconds)])
    around = math.exp(NORMAL_80 * run.spread)
    pace = promised_pace(Interval(run.promised_s, run.promised_s / around, run.promised_s * around))
    work = Work(total_steps=total, startup_s=run.promised_startup_s, saving_s=0.0)
    block = 1 if total <= EVERY_STEP_UP_TO else total // LINES
    for begin in range(0, total - 1, block):
        step = min(begin + block, total)
        step_s = float(ends[step] - ends[begin]) / (step - begin)
        pace = measured_pace(pace, step=step, total=total, step_s=step_s)
        left = time_left(work, pace, silent_s=0.0)
        if left is not None and step < total:
            yield Reading(
                step / total,
                float(ends[step]),
                left,
                float(ends[-1] - ends[step]),
                run.promised_s * (total - step),
                step_s * (total - step),
                pace,
            )


def at_marks(series: list[Reading]) -> dict[float, Reading]:
    """The first reading at or after each mark."""
    return {mark: found for mark in MARKS if (found := next((r for r in series if r.share >= mark), None))}


def inside(left: Interval, true_s: float) -> bool:
    return (left.low or 0.0) <= true_s <= (left.high or math.inf)


def report_accuracy(title: str, played: list[tuple[Run, dict[float, Reading]]]) -> None:
    """Coverage and errors at each mark."""
    print(f"\n{title}, {len(played)} runs: inside | median error: forecast, promise, last step | width")
    for mark in MARKS:
        found = [series[mark] for _, series in played if mark in series]
        held = np.mean([inside(r.left, r.true_s) for r in found])
        errors = [
            median(abs(math.log(value(r) / r.true_s)) for r in found)
            for value in (lambda r: r.left.value, lambda r: r.promise_s, lambda r: r.last_step_s)
        ]
        width = median(math.log((r.left.high or 1) / (r.left.low or 1)) / 2 for r in found)
        print(
            f"  {mark:4.0%}  {held:6.1%} | "
            + "  ".join(f"{error:6.1%}" for error in errors)
            + f" | ±{width:.0%}"
        )


def report_readings(played: list[tuple[Run, dict[float, Reading]]]) -> None:
    """How often a later forecast of the end lies inside the interval of an earlier one."""
    print("\nthe later forecast lies inside the earlier interval")
    for first, later in pairwise(MARKS):
        pairs = [
            (series[first], series[later]) for _, series in played if first in series and later in series
        ]
        held = np.mean([inside(a.left, b.at_s + b.left.value - a.at_s) for a, b in pairs])
        print(f"  forecast at {first:.0%}, looked at again at {later:.0%}: {held:.1%}")


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a job passed its limit, and when it was warned, as a share of its duration before that."""

    passed: bool
    lead: float | None


def late(run: Run, series: list[Reading]) -> Judged:
    end = run.startup_s + float(run.seconds.sum())
    before = (r for r in series if r.at_s < run.deadline_s)
    outlooks = ((r.at_s, Outlook(left=r.left, deadline_in_s=run.deadline_s - r.at_s)) for r in before)
    at_s = first_warning(outlooks, Risk.LATE)
    return Judged(end > run.deadline_s, None if at_s is None else (run.deadline_s - at_s) / end)


def over_budget(run: Run, series: list[Reading], rng: np.random.Generator) -> Judged:
    """A budget somewhere around the promised cost, on a node whose price one in five changes meanwhile."""
    end = run.startup_s + float(run.seconds.sum())
    change_s = rng.uniform(0, end) if rng.uniform() < 0.2 else math.inf
    later, earlier_cost = rng.uniform(0.7, 1.4), rng.choice([0.0, 0.5]) * end  # of an attempt before
    promised_s = run.promised_startup_s + run.promised_s * len(run.seconds)
    budget = earlier_cost + promised_s * math.exp(rng.uniform(math.log(0.8), math.log(2.5)))

    def spent(at_s: float) -> float:
        return earlier_cost + min(at_s, change_s) + later * max(0.0, at_s - change_s)

    def outlook(r: Reading) -> Outlook:
        price = later if r.at_s > change_s else 1.0
        return Outlook(left=r.left, budget=budget, spent=spent(r.at_s), cost_per_s=price)

    before = ((r.at_s, outlook(r)) for r in series if spent(r.at_s) < budget)
    at_s = first_warning(before, Risk.OVER_BUDGET)
    passed_s = (
        change_s + (budget - spent(change_s)) / later if budget > spent(change_s) else budget - earlier_cost
    )
    return Judged(spent(end) > budget, None if at_s is None else (passed_s - at_s) / end)


def first_warning(outlooks: Iterable[tuple[float, Outlook]], risk: Risk) -> float | None:
    """When a job is warned for the first time."""
    return next((at_s for at_s, outlook in outlooks if risk in likely(chances(outlook), ())), None)


def report_warnings(risk: Risk, judged: list[Judged]) -> None:
    """Precision, recall and lead of the first warning of each job."""
    leads = [one.lead for one in judged if one.passed and one.lead is not None]
    passed, warned = sum(one.passed for one in judged), sum(one.lead is not None for one in judged)
    print(f"\n{risk}: {passed} of {len(judged)} jobs; warned of {len(leads)} of them, and of", end="")
    print(f" {warned - len(leads)} others")
    print(f"  precision {len(leads) / max(1, warned):.1%}, recall {len(leads) / max(1, passed):.1%}")
    print(f"  lead: median {median(leads):.0%} of the duration, of nine in ten {np.quantile(leads, 0.1):.0%}")


def report_memory(half: str, count: int) -> None:
    """The same of warnings that memory will not last; looked at after each of 200 parts of a training."""
    rng = np.random.default_rng([2027, HALVES[half]])
    found: list[tuple[bool, bool, float | None]] = []
    for _ in range(count):
        so_far, leaks, capacity = peaks(rng)
        over = np.flatnonzero(so_far > capacity)
        end = int(over[0]) if len(over) else len(so_far)
        looked = range(FEWEST_STEPS, end, max(1, len(so_far) // 200))
        first = next((step for step in looked if _will_not_last(so_far, step, capacity)), None)
        found.append((len(over) > 0, leaks, None if first is None else (end - first) / len(so_far)))
    leads = [lead for ran_out, _, lead in found if ran_out and lead is not None]
    leaking = [lead is not None for ran_out, leaks, lead in found if ran_out and leaks]
    warned = sum(lead is not None for _, _, lead in found)
    print(f"\nout of memory: {sum(one[0] for one in found)} of {count} jobs; warned of {warned}")
    print(
        f"  precision {len(leads) / warned:.1%}, recall {len(leads) / sum(one[0] for one in found):.1%},",
        end="",
    )
    print(f" of leaks {np.mean(leaking):.1%}; lead: median {median(leads):.0%} of the duration")


def _will_not_last(so_far: Array, step: int, capacity: float) -> bool:
    if so_far[step - 1] < NEARLY_FULL * capacity:
        return False
    parts = tuple(float(so_far[step * part // PARTS - 1]) for part in range(1, PARTS + 1))
    left = len(so_far) - step
    return PeakGrowth(peaks=parts, steps=step, steps_left=left, capacity=capacity).will_not_last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--half", choices=list(HALVES), default="test")
    options = parser.parse_args()
    series = [(run, list(readings(run))) for run in runs(options.half, options.runs)]
    marked = [(run, at_marks(found)) for run, found in series]
    report_accuracy("all", marked)
    for source in ("recorded", "simulated"):
        report_accuracy(source, [one for one in marked if one[0].source == source])
    for disturbance in ("none", "slow-down", "stall", "speed-up"):
        report_accuracy(disturbance, [one for one in marked if one[0].disturbance == disturbance])
    report_readings(marked)
    report_warnings(Risk.LATE, [late(run, found) for run, found in series])
    rng = np.random.default_rng([2028, HALVES[options.half]])
    report_warnings(Risk.OVER_BUDGET, [over_budget(run, found, rng) for run, found in series])
    report_memory(options.half, options.runs)


if __name__ == "__main__":
    main()
