"""Why jobs have no option at all: most often nobody says, but a node may be a package short."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core.domain import config_space
from knowledge.core.domain.method_support import explain_unsupported
from knowledge.core.recommend.submit_defaults import same_gpu
from scheduler.loop.option_cache import SLICE
from scheduler.models import Job, Node
from scheduler.selectors.cluster.inventory import inventory

WAITS = "It starts when a node that can joins, or one of these is put right."


def explain_missing_options(job_ids: Sequence[str]) -> dict[str, str]:
    """By job why no registered node can train by its method; jobs with another hindrance are left out.

    Asked in every tick, so nodes are looked at only if a job wants what not all of them can train.
    """
    wanting = _wanting(job_ids) if job_ids else []
    pools, found = inventory().pools if wanting else (), {}
    for pk, method, gpu_model in wanting:
        some = [pool for pool in pools if gpu_model is None or same_gpu(pool.gpu_model, gpu_model)]
        if why := explain_unsupported(some, method):
            found[pk] = f"{why} {WAITS}"
    return found


def _wanting(job_ids: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Job, method and fixed GPU model of those whose method some node cannot train, or no CPU slot can."""
    lacks = Node.present.exclude(cannot_train={}).values_list("cannot_train", flat=True)
    lacking = {*config_space.QUANTIZED, *(method for of_node in lacks for method in of_node)}
    found = []
    for start in range(0, len(job_ids), SLICE):
        rows = Job.objects.filter(pk__in=job_ids[start : start + SLICE], params__method__in=lacking)
        found += [(pk, bound["method"], fixed.get("gpu_model"))
                  for pk, bound, fixed in rows.values_list("pk", "params", "fixed")]  # fmt: skip
    return found
