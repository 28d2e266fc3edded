"""Jobs as lines of a table: what every list of jobs shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduler.core.spending import Spent
from scheduler.models import Job
from scheduler.selectors.figures.cost import job_costs
from scheduler.selectors.figures.job import JobFigures, job_figures
from scheduler.selectors.figures.start_forecasts import Expected, newest_forecast
from scheduler.states import TERMINAL


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its figures and cost.

    Until it has ended, the cost is the promised one. starts: the forecast of a job that waits, if there is
    one. differs: the parameters in which it differs from the others of its array, where these are listed.
    """

    job: Job
    figures: JobFigures
    starts: Expected | None
    cost: float | None
    differs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.job.state in TERMINAL


def rows_of(
    jobs: Iterable[Job], now: datetime, differs: Mapping[str, Mapping[str, Any]] | None = None
) -> list[JobRow]:
    """Return the lines of jobs that were read by `for_lists`.

    It takes two queries for what the ended ones cost. differs: by job, see `JobRow`.
    """
    shown, found = list(jobs), differs or {}
    costs = job_costs([job for job in shown if job.state in TERMINAL], now)
    return [
        JobRow(
            job=job,
            figures=job_figures(job, now),
            starts=newest_forecast(job, now),
            cost=_cost(job, costs.get(job.pk)),
            differs=found.get(job.pk, {}),
        )
        for job in shown
    ]


def _cost(job: Job, spent: Spent | None) -> float | None:
    """The cost; None where nodes have no price."""
    if job.state in TERMINAL:
        return spent.amount if spent else None
    return promised.cost.value or None if (promised := job.promised) else None
