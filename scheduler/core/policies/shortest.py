"""Shortest first, by the predicted durations of the jobs' options.

`sjf` never stops a job. `srtf` does, for one that has clearly less left. Lucid's priority (`lucid`) is
predicted duration times GPUs, without preemption, best fit. Sources: the classic rules; Hu et al., Lucid,
ASPLOS 2023 (packing of two jobs on one GPU is left to the simulator: a live GPU has one holder).
"""

from __future__ import annotations

from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.cycle.ranking import Rank
from scheduler.core.remaining_work import remaining_gpu_s, remaining_s
from scheduler.core.types import Description, JobInfo


def by_remaining_s(job: JobInfo, _now: float) -> Rank:
    """Fewest predicted seconds left first; jobs without a prediction go last."""
    return (remaining_s(job),)


def by_remaining_gpu_s(job: JobInfo, _now: float) -> Rank:
    """Fewest predicted GPU-seconds left first."""
    return (remaining_gpu_s(job),)


SJF = Ranked(
    "sjf",
    by_remaining_s,
    steady=True,
    description=Description(
        summary="The job with the shortest predicted duration first; jobs without a prediction last.",
        order="fewest predicted seconds",
        needs="durations",
        source="classic",
    ),
)
# A wider tolerance does not serve it: it takes GPUs back anyway (docs/adr/0006).
SRTF = Ranked(
    "srtf",
    by_remaining_s,
    CycleOptions(blocks=HeadOfLine.NOTHING, preempts=True, hysteresis=0.1, tolerance=1.25),
    round_s=60.0,
    steady=True,
    description=Description(
        summary="The job with the least predicted time left first; stops jobs with clearly more time left.",
        order="fewest predicted seconds left",
        needs="durations",
        source="classic",
    ),
)
LUCID = Ranked(
    "lucid",
    by_remaining_gpu_s,
    steady=True,
    description=Description(
        summary="The job with the least predicted duration times GPUs first, so small jobs end soon.",
        order="predicted seconds × GPUs",
        needs="durations",
        source="Lucid, ASPLOS 2023",
    ),
)
