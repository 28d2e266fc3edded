"""Why jobs have no option at all: most often nobody says, but a node may be a package short."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core.settle import same_gpu
from knowledge.core.trainable import untrainable
from scheduler.loop.parsed import SLICE
from scheduler.models import Job
from scheduler.selectors.inventory import inventory

MOST = 500  # characters that a job keeps of why it waits
WAITS = "It starts when a node that can joins, or one of these is put right."


def why_no_option(job_ids: Sequence[str]) -> dict[str, str]:
    """By job why no registered node can train by its method; jobs with another hindrance are left out."""
    if not job_ids:
        return {}
    pools, found = inventory().pools, {}
    for start in range(0, len(job_ids), SLICE):
        rows = Job.objects.filter(pk__in=job_ids[start : start + SLICE])
        for pk, bound, fixed in rows.values_list("pk", "params", "fixed"):
            wanted = fixed.get("gpu_model")
            some = [pool for pool in pools if wanted is None or same_gpu(pool.gpu_model, wanted)]
            if why := untrainable(some, bound.get("method", "")):
                found[pk] = f"{why} {WAITS}"[:MOST]
    return found
