"""Reasons why jobs have no option at all.

Mostly there is nothing to explain, but a node may be a package short.
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain import config_space
from knowledge.core.domain.method_support import explain_unsupported
from scheduler.loop.options.option_cache import SLICE
from scheduler.models import Job, Node
from scheduler.selectors.cluster.inventory import inventory

WAITS = "It starts when a node that can joins, or one of these is put right."


def explain_missing_options(job_ids: Sequence[str]) -> dict[str, str]:
    """Return by job why no registered node can train by its method.

    Jobs with another hindrance are left out. This is asked in every tick, so nodes are looked
    at only if a job wants a method that some of them cannot train.
    """
    wanting = _wanting(job_ids) if job_ids else []
    if not wanting:
        return {}
    pools, catalogue, found = inventory(in_service=False, spot=True).pools, portal_catalogue(), {}
    for pk, method, gpu_model in wanting:
        some = [pool for pool in pools if gpu_model is None or catalogue.same_gpu(pool.gpu_model, gpu_model)]
        if why := explain_unsupported(some, method):
            found[pk] = f"{why} {WAITS}"
    return found


def _wanting(job_ids: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Return the jobs whose method is not trained everywhere.

    Each comes as job, method and fixed GPU model. Some node cannot train such a method, or no
    CPU slot can.
    """
    lacks = Node.present.exclude(cannot_train={}).values_list("cannot_train", flat=True)
    lacking = {*config_space.QUANTIZED, *(method for of_node in lacks for method in of_node)}
    found = []
    for start in range(0, len(job_ids), SLICE):
        rows = Job.objects.filter(pk__in=job_ids[start : start + SLICE], params__method__in=lacking)
        found += [(pk, bound["method"], fixed.get("gpu_model"))
                  for pk, bound, fixed in rows.values_list("pk", "params", "fixed")]  # fmt: skip
    return found
