"""Least attained service: rank jobs by what they received so far, unpredicted.

Service received stands for service still needed. Attained service is GPU-seconds (2D: GPUs
times time). `las` ranks by it continuously; `tiresias` by queues, first in first out in each.
Source: Gu et al., Tiresias, NSDI 2019, and the authors' open code; the limits differ between
implementations and change results, so they are parameters.
"""

from __future__ import annotations

from bisect import bisect_right

from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranked import Key, Ranked
from scheduler.core.cycle.ranking import Rank
from scheduler.core.remaining_work import option_of
from scheduler.core.types import Description, JobInfo

LIMITS_GPU_S = (3_600.0, 36_000.0)
PROMOTION = 8.0  # a job that waited this many times as long as it ran goes back to the top; 0: never
RULES = CycleOptions(blocks=HeadOfLine.NOTHING, preempts=True)


def by_attained_gpu_s(job: JobInfo, _now: float) -> Rank:
    """Least GPU-seconds received first."""
    return (job.attained_gpu_s,)


def by_queues(
    limits: tuple[float, ...] = LIMITS_GPU_S, promotion: float = PROMOTION, *, by_submission: bool = False
) -> Key:
    """Tiresias' (queue, first start), with queues that end at `limits` GPU-seconds.

    A job that never started, or every job if `by_submission`, counts from its submission. `promotion`: see
    PROMOTION.
    """

    def key(job: JobInfo, now: float) -> Rank:
        queue = 0 if _starves(job, now, promotion) else bisect_right(limits, job.attained_gpu_s)
        first = None if by_submission else job.first_started_at
        return float(queue), job.submitted_at if first is None else first

    return key


def _starves(job: JobInfo, now: float, promotion: float) -> bool:
    option = option_of(job)
    if not promotion or option is None or job.holds or job.stopped_at is None:
        return False
    executed_s = job.attained_gpu_s / option.gpus
    return now - job.stopped_at >= promotion * executed_s


LAS = Ranked(
    "las",
    by_attained_gpu_s,
    CycleOptions(blocks=HeadOfLine.NOTHING, preempts=True, hysteresis=0.1),
    round_s=60.0,
    steady=True,
    by_service=True,
    description=Description(
        summary="The job with the least GPU time received first, without predictions; stops running jobs.",
        order="least GPU-seconds received",
        needs="nothing",
        source="Tiresias, NSDI 2019",
    ),
)
TIRESIAS = Ranked(
    "tiresias",
    by_queues(),
    RULES,
    round_s=60.0,
    description=Description(
        summary="Queues by GPU time received, first come, first served within each; stops running jobs.",
        order="queues ending at 3,600 and 36,000 GPU-s received, first start within one",
        needs="nothing",
        source="Tiresias, NSDI 2019",
    ),
)
