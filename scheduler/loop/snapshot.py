"""Rows -> ClusterState, in a handful of queries whatever the number of jobs and nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from knowledge.core.domain.types import Option
from knowledge.core.recommend.objectives import keeping
from scheduler.core import types
from scheduler.loop.declines import Avoided, avoided_by
from scheduler.loop.option_cache import options_of
from scheduler.loop.unsupported import explain_missing_options
from scheduler.models import Allocation, Attempt, Gpu, Job
from scheduler.selectors.checkpoints import only_nodes
from scheduler.selectors.nodes import trusted_since
from scheduler.services.jobs.objectives import objective_of
from scheduler.states import LIVE, JobState, NodeState, WaitState

COLUMNS = (
    "id", "owner_id", "version", "options_for", "submitted_at", "first_started_at", "deadline_at", "budget",
    "goal", "state", "step", "total_steps", "wait_code", "wait_text",
)  # fmt: skip


def take_snapshot(memory: Mapping[str, Any], now: datetime) -> types.ClusterState:
    """The cluster at `now`: waiting and running jobs with their options, nodes with what nobody holds."""
    rows = Job.objects.filter(state__in=[JobState.QUEUED, *LIVE]).order_by("submitted_at", "id")
    jobs = list(rows.only(*COLUMNS))
    options = options_of(jobs)
    no_option = explain_missing_options([job.pk for job in jobs if not options[job.pk]])
    held = _held()
    history = _history(rows)
    pinned = only_nodes(rows.filter(state=JobState.QUEUED))
    avoided = avoided_by(rows, now)
    return types.ClusterState(
        jobs=tuple(
            _job(
                job,
                options[job.pk],
                held.get(job.pk, ()),
                history[job.pk],
                pinned.get(job.pk),
                no_option.get(job.pk, ""),
                avoided.get(job.pk, Avoided()),
                now,
            )
            for job in jobs
        ),
        nodes=_nodes({gpu for gpus in held.values() for gpu in gpus}, now),
        memory=memory,
    )


def _held() -> dict[str, tuple[types.GpuId, ...]]:
    """The GPUs that each job holds."""
    rows = Allocation.objects.filter(released_at__isnull=True).order_by("gpu__node_id", "gpu__index")
    held: dict[str, tuple[types.GpuId, ...]] = defaultdict(tuple)
    for job, node, index in rows.values_list("claim__attempt__job_id", "gpu__node_id", "gpu__index"):
        held[job] += ((node, index),)
    return held


def _history(jobs: QuerySet[Job]) -> dict[str, list[Attempt]]:
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    rows = Attempt.objects.filter(job__in=jobs.order_by().values("pk")).order_by("fence")
    for attempt in rows.only("job_id", "fence", "option", "created_at", "ended_at"):
        attempts[attempt.job_id].append(attempt)
    return attempts


def _job(
    job: Job,
    options: tuple[Option, ...],
    gpus: tuple[types.GpuId, ...],
    attempts: list[Attempt],
    only_node: str | None,
    no_option: str,
    avoided: Avoided,
    now: datetime,
) -> types.Job:
    aim = objective_of(job, now)
    live = next((attempt for attempt in attempts if attempt.ended_at is None), None)
    ended = [attempt.ended_at.timestamp() for attempt in attempts if attempt.ended_at]
    return types.Job(
        id=job.pk,
        submitted_at=job.submitted_at.timestamp(),
        options=keeping(options, aim.deadline_s, aim.budget),
        goal=aim.goal,
        user=str(job.owner_id),
        due_at=job.deadline_at.timestamp() if job.deadline_at else None,
        work_left=1 - job.step / job.total_steps if job.total_steps and job.step <= job.total_steps else 1.0,
        attained_gpu_s=sum(_gpu_seconds(attempt, now) for attempt in attempts),
        restarts=max(0, len(attempts) - 1),
        first_started_at=job.first_started_at.timestamp() if job.first_started_at else None,
        stopped_at=ended[-1] if ended and live is None else None,
        holds=_holding(live, gpus) if live and gpus else None,
        only_node=only_node,
        avoids=avoided.nodes,
        declined=avoided.text,
        no_option=no_option,
        hold=job.wait_text if job.wait_code == WaitState.OPTIONS else "",
    )


def _gpu_seconds(attempt: Attempt, now: datetime) -> float:
    return max(0.0, attempt.lasted_s(now)) * attempt.promised.gpus


def _holding(attempt: Attempt, gpus: tuple[types.GpuId, ...]) -> types.Holding:
    return types.Holding(option=attempt.promised, gpus=gpus, since=attempt.created_at.timestamp())


def _nodes(held: set[types.GpuId], now: datetime) -> tuple[types.Node, ...]:
    fresh = trusted_since(now)
    groups: dict[tuple[str, str], list[Gpu]] = defaultdict(list)
    for gpu in Gpu.present.select_related("node").order_by("node_id", "index"):
        groups[gpu.node_id, gpu.model].append(gpu)
    return tuple(
        types.Node(
            id=node_id,
            gpu_model=model,
            total=len(gpus),
            free=tuple(gpu.index for gpu in gpus if (node_id, gpu.index) not in held),
            cannot_train=frozenset(gpus[0].node.cannot_train),
            ready=gpus[0].node.state == NodeState.READY and gpus[0].node.last_seen_at >= fresh,
        )
        for (node_id, model), gpus in sorted(groups.items())
    )
