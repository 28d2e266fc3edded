"""Which checkpoint a job goes on from."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from scheduler.models import Checkpoint, Job


def _within_reach() -> QuerySet[Checkpoint]:
    """The checkpoints at the portal or on a node that was not removed.

    Every node of a training reads the checkpoint, so that one on a single disk is no use to several.
    """
    alone = Q(attempt__option__config__number_nodes=1)
    return Checkpoint.objects.filter(Q(node__isnull=True) | alone, node__removed_at__isnull=True)


def resumable(job: Job) -> Checkpoint | None:
    """Return the furthest registered checkpoint of a job.

    The portal's copy wins over a node's of the same step.
    """
    found = list(_within_reach().filter(job=job).order_by("-step"))
    if not found:
        return None
    return min(
        (checkpoint for checkpoint in found if checkpoint.step == found[0].step),
        key=lambda checkpoint: checkpoint.node_id is not None,
    )


def only_nodes(jobs: QuerySet[Job]) -> dict[str, str]:
    """The node of each job whose furthest checkpoint lies there alone. One query."""
    found = _within_reach().filter(job__in=jobs.order_by().values("pk")).only("job_id", "step", "node_id")
    furthest: dict[str, tuple[int, bool, str]] = {}
    for checkpoint in found:
        at_portal = checkpoint.node_id is None
        candidate = (checkpoint.step, at_portal, checkpoint.node_id or "")
        furthest[checkpoint.job_id] = max(furthest.get(checkpoint.job_id, (-1, False, "")), candidate)
    return {job: node for job, (_, at_portal, node) in furthest.items() if not at_portal and node}


def of_job(job: Job) -> QuerySet[Checkpoint]:
    """All registered checkpoints with where they lie, the furthest first."""
    return Checkpoint.objects.filter(job=job).select_related("node", "attempt").order_by("-step", "-pk")
