"""Objectives of a job: a goal, and the deadline and budget that come before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from knowledge.core.domain.types import Goal
from knowledge.core.recommend.objectives import needed_limit, why_needed
from scheduler.core.job_terms import problems
from scheduler.errors import BadParameters
from scheduler.models import Job
from scheduler.selectors.jobs import JobColumns

DEADLINE = "deadline_at"
FARTHEST = timedelta(days=3653)
AT_LEAST_S = 1.0  # a deadline that has passed: as soon as possible


@dataclass(frozen=True, slots=True)
class Objective:
    """`deadline_s` counts from now, or from when the job may begin.

    `budget` is in the currency of the nodes' prices.
    """

    goal: Goal = Goal.BALANCED
    deadline_s: float | None = None
    budget: float | None = None


def aim_of_request(
    *,
    goal: str,
    deadline_at: datetime | None,
    budget: float | None,
    now: datetime,
    begin_at: datetime | None = None,
) -> Objective:
    """Return the checked aim of a person who submits.

    Raises BadParameters naming every wrong field.
    """
    errors = problems({"goal": goal, "budget": budget})
    if deadline_at is not None and deadline_at <= now:
        errors[DEADLINE] = "must lie in the future"
    elif deadline_at is not None and deadline_at > now + FARTHEST:
        errors[DEADLINE] = "must lie within ten years from now"
    needed = needed_limit(goal, deadline=DEADLINE)
    if needed and {DEADLINE: deadline_at, "budget": budget}[needed] is None:
        errors[needed] = why_needed(goal)
    if errors:
        raise BadParameters(errors)
    return _aim(goal, deadline_at, budget, max(now, begin_at or now))


def objective_of(job: Job | JobColumns, now: datetime) -> Objective:
    """The aim of a job that waits."""
    return _aim(job.goal, job.deadline_at, job.budget, max(now, job.begin_at or now))


def _aim(goal: str, deadline_at: datetime | None, budget: float | None, now: datetime) -> Objective:
    left = None if deadline_at is None else max(AT_LEAST_S, (deadline_at - now).total_seconds())
    return Objective(Goal(goal), left, budget)
