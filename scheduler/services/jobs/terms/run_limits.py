"""How long a job may run: all its attempts together, waiting apart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.wording import rough_time
from portal.accounts.models import User
from scheduler.errors import BadParameters
from scheduler.models import Job
from scheduler.selectors.checkpoints import of_job
from scheduler.selectors.figures.times import duration_s
from scheduler.selectors.quotas import longest_run_s
from scheduler.services.jobs.transitions import move_job
from scheduler.states import FailureCode, JobState


class RunLimit(NamedTuple):
    """The longest that a job may run, in s; None: as long as it takes."""

    max_run_s: int | None = None
    notes: tuple[str, ...] = ()


def run_limit(
    *, requested: int | None, actor: User, promise: Mapping[str, Any] | None, ran_s: float = 0.0
) -> RunLimit:
    """Return the limit of a job that asks for one, or leaves it open (None).

    It is then the longest that the person's jobs may run, which only administrators may exceed. promise: the
    option that is promised, as stored. ran_s: what all its attempts have run so far. Raises BadParameters.
    """
    longest = longest_run_s(actor)
    if requested is None:
        requested = longest
    if requested is None:
        return RunLimit()
    if longest is not None and requested > longest and not actor.is_admin:
        raise _refused(
            f"may be {longest:,} ({rough_time(longest)}) at most; an administrator can allow your jobs more"
        )
    if requested <= ran_s:
        raise _refused(
            f"must exceed {ran_s:,.0f} ({rough_time(ran_s)}), which the job has run already; choose a longer"
            " time, or cancel the job"
        )
    return RunLimit(requested, _within(requested, promise))


def _within(max_run_s: int, promise: Mapping[str, Any] | None) -> tuple[str, ...]:
    """A note where the job is expected to take longer.

    Raises BadParameters if it could not even start.
    """
    option = read_option(dict(promise)) if promise else None
    if option is None or option.duration_s.value <= 0:
        return ()
    if max_run_s <= option.startup_s:
        raise _refused(f"must exceed the promised start-up of {rough_time(option.startup_s)}")
    if option.duration_s.value <= max_run_s:
        return ()
    takes = f"It is expected to run for {rough_time(option.duration_s.value)}"
    return (f"{takes}, and is stopped after {rough_time(max_run_s)}, its time limit.",)


def stops_at(job: Job, now: datetime) -> datetime | None:
    """When a job that runs, or is about to, reaches its limit; None: never."""
    if job.max_run_s is None:
        return None
    return now + timedelta(seconds=job.max_run_s - duration_s(list(job.attempts.all()), now))


def is_used_up(job: Job, now: datetime) -> bool:
    """Has the job run for as long as it may?"""
    return job.max_run_s is not None and duration_s(list(job.attempts.all()), now) >= job.max_run_s


def fail_at_limit(job: Job, now: datetime, data: dict[str, Any]) -> Job:
    """End a job that has run for as long as it may; its checkpoints stay."""
    saved = of_job(job).first()
    kept = f"The checkpoint at step {saved.step:,} is kept." if saved else "It has no checkpoint."
    reason = f"It reached its time limit of {rough_time(job.max_run_s or 0)}. {kept}"
    return move_job(
        job=job,
        to=JobState.FAILED,
        now=now,
        reason=reason,
        data=data,
        failure_class="resource",
        failure_code=FailureCode.TIME_LIMIT,
        failure_reason=reason,
    )


def _refused(why: str) -> BadParameters:
    return BadParameters({"max_run_s": why})
