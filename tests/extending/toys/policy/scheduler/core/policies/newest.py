"""Last in, first out: the newest job first.

Running jobs are never stopped. Source: the classic rule.
"""

from __future__ import annotations

from scheduler.core.cycle.ranked import Ranked
from scheduler.core.cycle.ranking import Rank
from scheduler.core.types import Description, JobInfo


def by_novelty(job: JobInfo, _now: float) -> Rank:
    """Latest submission first."""
    return (-job.submitted_at,)


NEWEST = Ranked(
    "newest",
    by_novelty,
    steady=True,
    description=Description(
        summary="Last come, first served.", order="latest submission", needs="options", source="classic"
    ),
)
