"""Last in, first out: the newest job first. Nobody is stopped. Source: the classic rule."""

from __future__ import annotations

from scheduler.core.cycle.cycle import Rank, Ranked
from scheduler.core.types import Description, Job


def by_novelty(job: Job, _now: float) -> Rank:
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
