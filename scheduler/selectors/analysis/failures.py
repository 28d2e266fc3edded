"""Why a job failed, told from its last attempt's log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from knowledge.reading.failures.explaining import LAST_LINES, Explanation, FailureFacts, explain_failure
from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.failures.unusual import unusual_lines
from scheduler.models import Attempt, Failure, Job, LogPiece
from scheduler.states import JobState, Outcome
from trainer.recipes import RECIPES

USUAL_RUNS, USUAL_PIECES = 5, 200  # that a log of an unknown cause is compared with


def explained(job: Job) -> Explanation | None:
    """Return the cause of a job's failure.

    None if it has not failed, or never ran.
    """
    if job.state != JobState.FAILED:
        return None
    attempt = Attempt.objects.filter(job=job).order_by("-fence").first()
    if attempt is None:
        return None
    attempt.job = job
    return explained_attempt(attempt)


def explained_attempt(attempt: Attempt) -> Explanation:
    """Return the cause of an attempt's bad end.

    Where it is unknown, the log is compared with those of the owner's last runs that succeeded.
    """
    job, lines = attempt.job, last_lines(attempt)
    facts = FailureFacts(
        outcome=attempt.outcome,
        reason=attempt.reason,
        values=_ran_with(job, attempt),
        fixed=job.fixed,
        cause=job.failure_code,
    )
    found = explain_failure(lines, facts)
    return found if found.is_known else replace(found, unusual=unusual_lines(lines, _usual_lines(job)))


def _usual_lines(job: Job) -> Iterator[str]:
    """Lines of the owner's last runs that succeeded."""
    succeeded = Attempt.objects.filter(job__owner=job.owner_id, outcome=Outcome.SUCCEEDED)
    last = list(succeeded.order_by("-ended_at").values_list("pk", flat=True)[:USUAL_RUNS])
    pieces = LogPiece.objects.filter(claim__attempt__in=last).order_by("pk")
    for text in pieces.values_list("text", flat=True)[:USUAL_PIECES]:
        yield from text.splitlines()


def kept_causes(job: Job) -> dict[int, Failure]:
    """Why attempts of the job ended badly, by the attempt's number."""
    rows = Failure.objects.filter(attempt__job=job).select_related("attempt")
    return {row.attempt.fence: row for row in rows}


def last_lines(attempt: Attempt) -> list[LogLine]:
    """The end of an attempt's log; numbers count the lines of the whole job's log."""
    return list(deque(log_lines(attempt), maxlen=LAST_LINES))


def log_lines(attempt: Attempt) -> Iterator[LogLine]:
    """The lines of an attempt's log, with their numbers in the whole job's log."""
    for number, (fence, text) in enumerate(_lines(attempt.job), start=1):
        if fence == attempt.fence:
            yield LogLine(number, text)


def _lines(job: Job) -> Iterator[tuple[int, str]]:
    """Lines with the fences of their attempts; pieces may end within a line."""
    rows = LogPiece.objects.filter(claim__attempt__job=job).order_by("claim__attempt__fence", "pk")
    left, fence = "", 0
    for fence, text in rows.values_list("claim__attempt__fence", "text").iterator():
        lines = (left + text).splitlines(keepends=True)
        left = lines.pop() if lines and not lines[-1].endswith("\n") else ""
        yield from ((fence, line) for line in lines)
    if left:
        yield fence, left


def _ran_with(job: Job, attempt: Attempt) -> dict[str, Any]:
    """The attempt's parameters, bound at submission or by its configuration."""
    ran = {**asdict(attempt.promised.config), **job.params}
    return {name: ran[name] for name in RECIPES[job.recipe].params if ran.get(name) is not None}
