"""Calibrations of nodes, how far they are, and what their runs measured."""

from __future__ import annotations

from django.db.models import Count, Q, QuerySet

from knowledge.models import Execution
from scheduler.errors import NotFound
from scheduler.models import Attempt, Calibration, Job, Node
from scheduler.states import TERMINAL


def calibrations(node: Node) -> QuerySet[Calibration]:
    """The node's, newest first, with the number of runs `submitted` and `ended`."""
    ended = Count("jobs", filter=Q(jobs__state__in=TERMINAL))
    found = Calibration.objects.filter(node=node).select_related("requested_by")
    return found.annotate(submitted=Count("jobs"), ended=ended).order_by("-id")


def get_calibration(node: Node, calibration_id: str) -> Calibration:
    """One of the node's calibrations. Raises NotFound."""
    found = calibrations(node).filter(pk=calibration_id).first()
    if found is None:
        raise NotFound(f"There is no calibration {calibration_id[:50]} of this node.")
    return found


def open_calibrations() -> QuerySet[Calibration]:
    """The calibrations that have not ended, oldest first."""
    open_ones = Calibration.objects.filter(ended_at__isnull=True)
    return open_ones.select_related("requested_by", "file", "node").order_by("id")


def unfinished_jobs(calibration: Calibration) -> QuerySet[Job]:
    """The calibration's jobs that wait, run or stop."""
    return calibration.jobs.exclude(state__in=TERMINAL).order_by("pk")


def measured(calibration: Calibration) -> QuerySet[Execution]:
    """Measurements of its jobs' attempts, oldest first."""
    attempts = Attempt.objects.filter(job__in=calibration.jobs.values("pk")).values("pk")
    return Execution.objects.filter(attempt_id__in=attempts).order_by("pk")
