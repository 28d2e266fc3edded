"""What must hold after every fault, read from the rows alone (docs/architecture.md, "Reliability")."""

from __future__ import annotations

from itertools import pairwise

from knowledge.models import Execution
from scheduler.models import Allocation, Attempt, Job
from scheduler.states import TERMINAL


def assert_all_hold(rows: str) -> None:
    """Every job has ended; nothing is held, lost or told twice. rows: alias of the database."""
    for job in Job.objects.using(rows).all():
        assert job.state in TERMINAL, f"{job.id} is {job.state}"
        events = list(job.events.using(rows).all())
        assert [event.number for event in events] == list(range(1, job.version + 1))
        final = [event.number for event in events if event.kind == "state" and event.new in TERMINAL]
        assert len(final) == 1, f"{job.id} ended {len(final)} times"
    assert not Attempt.objects.using(rows).filter(ended_at__isnull=True).exists()
    assert not Allocation.objects.using(rows).filter(released_at__isnull=True).exists()
    assert_one_execution_per_attempt_that_ran(rows)
    assert_no_gpu_was_held_twice(rows)


def assert_one_execution_per_attempt_that_ran(rows: str) -> None:
    for attempt in Attempt.objects.using(rows).prefetch_related("claims"):
        ran = any(claim.started for claim in attempt.claims.all())
        executions = Execution.objects.using(rows).filter(attempt_id=attempt.id).count()
        assert executions == (1 if ran else 0), f"{attempt}: {attempt.outcome}, {executions} executions"


def assert_no_gpu_was_held_twice(rows: str) -> None:
    """I5: times of allocations of one GPU do not overlap."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for held in Allocation.objects.using(rows).exclude(released_at__isnull=True):
        assert held.released_at is not None
        span = (held.allocated_at.timestamp(), held.released_at.timestamp())
        spans.setdefault(held.gpu_id, []).append(span)
    for gpu, times in spans.items():
        ordered = sorted(times)
        for (_, end), (start, _) in pairwise(ordered):
            assert end <= start, f"GPU {gpu} was held twice"
