"""First in, first out over the jobs' options.

`fifo`: a job takes its best option that fits now, if that is within the tolerance of the best one it could
get on the empty cluster; else it waits and nobody behind it may take the GPU models it waits for, so that no
gang starves. Jobs that need other GPU models pass. `fifo-backfill`: any job that fits passes, so large
gangs may starve.
Sources: FIFO with filled-in configurations, after Jansen et al., CoTune; Kavier's `consolidated-backfill`
(docs/scheduling.md).
"""

from __future__ import annotations

from scheduler.core.cycle.cycle import AHEAD
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.cycle.ranking import Rank
from scheduler.core.types import Description, JobInfo


def by_arrival(job: JobInfo, _now: float) -> Rank:
    """Earliest submission first."""
    return (job.submitted_at,)


FIFO = Ranked(
    "fifo",
    by_arrival,
    behind=AHEAD,
    steady=True,
    description=Description(
        summary="First come, first served; a waiting job keeps the GPU models it needs from later jobs.",
        order="submission; a job that waits keeps the GPU models it waits for",
        needs="options",
        source="CoTune",
    ),
)
BACKFILL = Ranked(
    "fifo-backfill",
    by_arrival,
    CycleOptions(blocks=HeadOfLine.NOTHING),
    behind=AHEAD,
    steady=True,
    description=Description(
        summary="First come, first served, but any job that fits may pass; a large job may wait very long.",
        order="submission; any job that fits passes, large gangs may starve",
        needs="options",
        source="Kavier `consolidated-backfill`",
    ),
)
