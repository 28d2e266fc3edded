"""Jobs as lines of a table: what every list of jobs shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduler.models import Job
from scheduler.selectors.figures.cost import JobCost, costs_so_far, expected_cost
from scheduler.selectors.figures.job import JobFigures, job_figures
from scheduler.selectors.figures.start_forecasts import Expected, newest_forecast
from scheduler.states import TERMINAL


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its figures and cost.

    spent: what it cost so far; None where its GPUs have no price. expected_cost: what it will have cost in
    all, of one that has not held a GPU yet as it was promised; None where its end is not known. starts: the
    forecast of a job that waits, if there is one. differs: the parameters in which it differs from the others
    of its array, where these are listed.
    """

    job: Job
    figures: JobFigures
    starts: Expected | None
    spent: float | None
    expected_cost: float | None
    differs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.job.state in TERMINAL


def rows_of(
    jobs: Iterable[Job], now: datetime, differs: Mapping[str, Mapping[str, Any]] | None = None
) -> list[JobRow]:
    """Return the lines of jobs that were read by `for_lists`.

    It takes two queries for what they cost. differs: by job, see `JobRow`.
    """
    shown, found = list(jobs), differs or {}
    costs = costs_so_far(shown, now)
    return [_row(job, costs.get(job.pk), found.get(job.pk, {}), now) for job in shown]


def _row(job: Job, cost: JobCost | None, differs: Mapping[str, Any], now: datetime) -> JobRow:
    figures = job_figures(job, now)
    return JobRow(
        job=job,
        figures=figures,
        starts=newest_forecast(job, now),
        spent=cost.spent.amount if cost else None,
        expected_cost=expected_cost(job, cost, figures.ending),
        differs=differs,
    )
