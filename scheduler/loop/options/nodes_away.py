"""Nodes that could run a job, but are lost, drained or about to be."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from scheduler.core.cycle.wait_reasons import amount
from scheduler.loop.options.option_cache import SLICE
from scheduler.models import Gpu, Job
from scheduler.states import IN_SERVICE

NAMED = 3  # nodes that a reason lists


def explain_nodes_away(job_ids: Sequence[str]) -> dict[str, str]:
    """Return by job which nodes out of service offer what it was promised.

    Or what it ran on. Jobs without an option are asked about; where none does, the hindrance is another one.
    """
    away = _away() if job_ids else {}
    found = {}
    for start in range(0, len(job_ids) if away else 0, SLICE):
        rows = Job.objects.filter(pk__in=job_ids[start : start + SLICE])
        for job in rows.only("promise", "binding"):
            known = job.binding or job.promise
            if known and (why := _why(read_option(known), away)):
                found[job.pk] = why
    return found


def _away() -> dict[tuple[str, str, str], int]:
    """GPUs of the nodes out of service, by node, its state and GPU model."""
    gpus = Gpu.present.exclude(node__state__in=IN_SERVICE).order_by("node__name")
    count: dict[tuple[str, str, str], int] = {}
    for name, state, model in gpus.values_list("node__name", "node__state", "model"):
        count[name, state, model] = count.get((name, state, model), 0) + 1
    return count


def _why(option: Option, away: dict[tuple[str, str, str], int]) -> str:
    share = option.gpus // option.nodes
    nodes = [
        f"{name} is {state}"
        for (name, state, model), gpus in away.items()
        if model == option.gpu_model and gpus >= share
    ]
    if not nodes:
        return ""
    more = f" and {len(nodes) - NAMED} more are away" if len(nodes) > NAMED else ""
    named = ", ".join(nodes[:NAMED]) + more
    return f"Needs {amount(option)}, and {named}. It starts when that is back, or a suitable node joins."
