"""Why a job failed, told from its last attempt's log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from knowledge.reading.failures.causes import CAUSES
from knowledge.reading.failures.explaining import UNKNOWN, Explanation, FailureFacts, explain_failure
from knowledge.reading.failures.remedies import remedied
from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.failures.unusual import unusual_lines
from scheduler.models import Attempt, Failure, Job
from scheduler.selectors.analysis.log_excerpts import excerpt_of
from scheduler.states import JobState, Outcome
from trainer.recipes import RECIPES

USUAL_RUNS = 3  # that a log of an unknown cause is compared with


def explained(job: Job) -> Explanation | None:
    """Return the cause of a job's failure.

    None if it has not failed, or never ran.
    """
    if job.state != JobState.FAILED:
        return None
    attempt = Attempt.objects.filter(job=job).select_related("failure").order_by("-fence").first()
    if attempt is None:
        return None
    attempt.job = job
    kept: Failure | None = getattr(attempt, "failure", None)
    return _as_kept(kept) if kept and kept.cause in CAUSES else explained_attempt(attempt)


def _as_kept(kept: Failure) -> Explanation:
    """The explanation that was read from the log once the attempt had ended."""
    job = kept.attempt.job
    lines = [LogLine(**line) for line in kept.lines]
    known = kept.cause != UNKNOWN
    return Explanation(
        cause=CAUSES[kept.cause],
        sentence=kept.sentence,
        line=lines[0] if known and lines else None,
        changes={} if job.failure_code else remedied(kept.cause, _ran_with(job, kept.attempt), job.fixed),
        unusual=() if known else lines,
    )


def explained_attempt(attempt: Attempt) -> Explanation:
    """Return the cause of an attempt's bad end.

    Where it is unknown, the log is compared with those of the owner's last runs that succeeded.
    """
    job, lines = attempt.job, excerpt_of(attempt).lines
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
    for attempt in succeeded.order_by("-ended_at")[:USUAL_RUNS]:
        yield from (line.text for line in excerpt_of(attempt).lines)


def kept_causes(job: Job) -> dict[int, Failure]:
    """Why attempts of the job ended badly, by the attempt's number."""
    rows = Failure.objects.filter(attempt__job=job).select_related("attempt")
    return {row.attempt.fence: row for row in rows}


def _ran_with(job: Job, attempt: Attempt) -> dict[str, Any]:
    """The attempt's parameters, bound at submission or by its configuration."""
    ran = {**asdict(attempt.promised.config), **job.params}
    return {name: ran[name] for name in RECIPES[job.recipe].params if ran.get(name) is not None}
