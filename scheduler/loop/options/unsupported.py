"""Reasons why jobs have no option at all.

Mostly there is nothing to explain, but a node may be a package or a base model short.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from django.db.models import Q

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain import config_space
from knowledge.core.domain.model_support import explain_unloadable, loading
from knowledge.core.domain.offline_node import WITHOUT_THE_HUB
from knowledge.core.domain.tuning_support import explain_unsupported
from scheduler.loop.options.option_cache import SLICE
from scheduler.models import Job, Node
from scheduler.selectors.cluster.inventory import inventory

WAITS = "It starts as soon as a suitable node joins, or one of these can train it again."
DOWNLOADED = ~reduce(or_, (Q(model__startswith=prefix) for prefix in WITHOUT_THE_HUB))


def explain_missing_options(job_ids: Sequence[str]) -> dict[str, str]:
    """Return by job why no registered node can train by its tuning, or load its model.

    Jobs with another hindrance are left out. This is asked in every tick, so nodes are looked
    at only if a job wants a tuning or a model that some of them lack.
    """
    wanting = _wanting(job_ids) if job_ids else []
    if not wanting:
        return {}
    pools, catalogue, found = inventory(in_service=False, spot=True).pools, portal_catalogue(), {}
    for job in wanting:
        wanted = job.fixed.get("gpu_model")
        some = [pool for pool in pools if wanted is None or catalogue.same_gpu(pool.gpu_model, wanted)]
        why = explain_unloadable(some, job.model) or explain_unsupported(
            loading(some, job.model), job.params["tuning"]
        )
        if why:
            found[job.pk] = f"{why} {WAITS}"
    return found


def _wanting(job_ids: Sequence[str]) -> list[Job]:
    """Return the jobs whose tuning or model does not go everywhere.

    Some node cannot train such a tuning, or no CPU slot can; a node that is offline holds some models only.
    """
    lacks = list(Node.present.exclude(cannot_train={}).values_list("cannot_train", flat=True))
    lacking = {*config_space.QUANTIZED, *(tuning for of_node in lacks for tuning in of_node)}
    wanting = Q(params__tuning__in=lacking)
    if Node.present.filter(held_models__isnull=False).exists():
        wanting = DOWNLOADED | wanting
    found: list[Job] = []
    for start in range(0, len(job_ids), SLICE):
        rows = Job.objects.filter(wanting, pk__in=job_ids[start : start + SLICE])
        found += rows.only("model", "params", "fixed")
    return found
