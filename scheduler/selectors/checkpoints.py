"""Which checkpoint a job goes on from."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet

from scheduler.models import Checkpoint, Job


def _within_reach() -> QuerySet[Checkpoint]:
    """The checkpoints without a fault, at the portal or on a node that is there.

    Every node of a training reads the checkpoint, so that one on a single disk is no use to several.
    """
    alone = Q(attempt__option__config__number_nodes=1)
    return Checkpoint.objects.filter(Q(node__isnull=True) | alone, node__removed_at__isnull=True, fault="")


def resumable(job: Job) -> Checkpoint | None:
    """The furthest registered checkpoint of a job."""
    return furthest([job]).get(job.pk)


def furthest(jobs: Collection[Job]) -> dict[str, Checkpoint]:
    """The furthest registered checkpoint of each job that has any; one query.

    The portal's copy wins over a node's of the same step.
    """
    found: dict[str, Checkpoint] = {}
    for one in _within_reach().filter(job__in=jobs).order_by("step", "pk"):
        known = found.get(one.job_id)
        if known is None or known.step < one.step or known.node_id is not None:
            found[one.job_id] = one
    return found


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
    """The checkpoints that may be resumed with where they lie, the furthest first."""
    return (
        Checkpoint.objects.filter(job=job, fault="")
        .select_related("node", "attempt")
        .order_by("-step", "-pk")
    )
