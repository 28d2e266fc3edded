"""Rows -> ClusterState, in a handful of queries whatever the number of jobs and nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from knowledge.core.types import Goal, Option
from scheduler.core import types
from scheduler.models import Allocation, Gpu, Job
from scheduler.selectors.checkpoints import only_nodes
from scheduler.states import JobState, NodeState

COLUMNS = ("id", "submitted_at", "goal", "options", "binding", "wait_code", "wait_text")


def take(memory: Mapping[str, Any], now: datetime) -> types.ClusterState:
    """The cluster at `now`: queued jobs with their options, nodes with what nobody holds."""
    queued = list(Job.objects.filter(state=JobState.QUEUED).order_by("submitted_at", "id").only(*COLUMNS))
    pinned = only_nodes(job.pk for job in queued) if queued else {}
    return types.ClusterState(
        jobs=tuple(_job(job, pinned.get(job.pk)) for job in queued), nodes=_nodes(now), memory=memory
    )


def _job(job: Job, only_node: str | None) -> types.Job:
    raw = [job.binding] if job.binding else job.options
    return types.Job(
        id=job.pk,
        submitted_at=job.submitted_at.timestamp(),
        options=tuple(Option.from_json(option) for option in raw),
        goal=Goal(job.goal),
        only_node=only_node,
        hold=job.wait_text if job.wait_code == "options" else "",
    )


def _nodes(now: datetime) -> tuple[types.Node, ...]:
    held = set(Allocation.objects.filter(released_at__isnull=True).values_list("gpu_id", flat=True))
    fresh = now - timedelta(seconds=settings.NODE_SUSPECT_S)
    groups: dict[tuple[str, str], list[Gpu]] = defaultdict(list)
    for gpu in Gpu.objects.select_related("node").order_by("node_id", "index"):
        groups[gpu.node_id, gpu.model].append(gpu)
    return tuple(
        types.Node(
            id=node_id,
            gpu_model=model,
            total=len(gpus),
            free=tuple(gpu.index for gpu in gpus if gpu.pk not in held),
            ready=gpus[0].node.state == NodeState.READY and gpus[0].node.last_seen_at >= fresh,
        )
        for (node_id, model), gpus in sorted(groups.items())
    )
