"""The option that each job's goal prefers on each GPU model.

Most jobs wait from round to round with the same options, so that what was found holds until these change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from knowledge.core.domain.types import Goal, Option, all_priced
from scheduler.core.divide.bundles import allowed_options, one_per_bundle
from scheduler.core.divide.rules import DivideRules
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import JobInfo


class Preferred(NamedTuple):
    """A job's option on each GPU model, and its pace there as a share of its best one."""

    by_model: dict[str, Option]
    paces: dict[str, float]


class _Found(NamedTuple):
    """Options that were looked at, and what was found.

    They are held, so that none is taken for another.
    """

    options: tuple[Option, ...]
    goal: Goal
    allowed: list[Option]
    preferred: Preferred


_found: dict[str, _Found] = {}  # by job, in the last decision of this process


def preferred_options(jobs: Sequence[JobInfo], free: FreeGpus, rules: DivideRules) -> dict[str, Preferred]:
    """Of each of the jobs. Others are forgotten."""
    global _found
    before, now = _found, dict[str, _Found]()
    for job in jobs:
        allowed, found = allowed_options(job, free, rules), before.get(job.id)
        if (
            found is None
            or found.options is not job.options
            or found.goal is not job.goal
            or found.allowed != allowed
        ):
            found = _Found(job.options, job.goal, allowed, _preferred(job, allowed))
        now[job.id] = found
    _found = now
    return {job_id: found.preferred for job_id, found in now.items()}


def _preferred(job: JobInfo, allowed: Sequence[Option]) -> Preferred:
    best: dict[str, Option] = {}
    priced = all_priced(job.options)
    options = one_per_bundle(allowed)
    for option in sorted(options, key=lambda o: (-o.score(job.goal, priced=priced), -o.gpus)):
        best[option.gpu_model] = option
    rates = known_rates(list(best.values()))
    paces = {model: rate / max(rates) for model, rate in zip(best, rates, strict=True)}
    return Preferred(best, paces)
