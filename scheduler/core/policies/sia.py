"""Sia: each round, the bundles that serve all jobs best on heterogeneous GPUs.

A job's gain from a bundle is its goodput there over that of its worst bundle, raised to the
power p; a running job's is lowered by the cost of its restarts so far. Goodput is the option's
tokens per second.
Source: Jayaram Subramanya et al., Sia, SOSP 2023, and the authors' open code, which multiplies
by the job's minimum GPUs (1 here), rounds to 2 decimals, clips and never uses lambda_a
(docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import ClassVar

import numpy as np

from knowledge.core.domain.types import Option
from scheduler.core.divide.assignment import assign
from scheduler.core.divide.bundles import bundle
from scheduler.core.divide.capacity import Capacity, uses
from scheduler.core.divide.columns import Columns, Floats
from scheduler.core.divide.repack import divide
from scheduler.core.divide.rules import DivideRules
from scheduler.core.placement.fit import Placement
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import ClusterState, Description, JobInfo, Plan

CLIP = 3000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sia:
    """The parameters of Sia.

    idle: the cost of leaving a job without GPUs (lambda_n); above 1, any job's smallest bundle
    beats it.
    change: the cost of each difference to the allocation before (lambda_a).
    decimals: to round costs to, as the authors' code does; None keeps them.
    """

    name: str = "sia"
    description: ClassVar[Description] = Description(
        summary="Every minute, divides GPUs of all kinds so that they serve all jobs best; stops and"
        " resizes jobs.",
        order="mixed integer program over all options, goodput = tokens/s; resizes jobs",
        needs="tokens/s of each option",
        source="Sia, SOSP 2023",
    )
    preempts: bool = True
    round_s: float | None = 60.0
    power: float = -0.5
    idle: float = 1.1
    change: float = 0.01
    decimals: int | None = None
    placement: Placement = Placement.BEST_FIT
    rules: DivideRules = field(default_factory=DivideRules)

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Divide the GPUs among all jobs at the least total cost.

        Larger priorities go first.
        """
        return divide(state, now, partial(self.choose, now=now), self.placement, self.rules)

    def choose(
        self, jobs: Sequence[JobInfo], options: Sequence[Sequence[Option]], supply: Capacity, now: float
    ) -> list[tuple[JobInfo, Option]]:
        """Jobs with the options they should have; a missing job should have none."""
        offers = [(job, option) for job, found in zip(jobs, options, strict=True) for option in found]
        columns = Columns(
            costs=self._costs(jobs, options, now) - self.idle,
            jobs=np.repeat(np.arange(len(jobs)), list(map(len, options))),
            gpus=np.array([option.config.number_gpus for _, option in offers], np.int64),
            uses=uses([option for _, option in offers], supply),
            capacity=np.array(list(supply.gpus.values()), np.int64),
        )
        return [offers[column] for column in assign(columns)]

    def costs(self, job: JobInfo, options: Sequence[Option], now: float) -> list[float]:
        """Return the cost of the job with each option, changes included.

        `idle` is the cost of none.
        """
        return [float(cost) for cost in self._costs([job], [options], now)]

    def _costs(self, jobs: Sequence[JobInfo], options: Sequence[Sequence[Option]], now: float) -> Floats:
        """The costs of each job's options, one job after the other."""
        rates, worst, kept, same = list[float](), list[float](), list[float](), list[bool]()
        for job, found in zip(jobs, options, strict=True):
            known = known_rates(found)
            rates += known
            worst += [min((rate for rate in known if rate > 0), default=inf)] * len(found)
            current = bundle(job.holds.option) if job.holds else None
            kept += [restart_factor(job, now) if current else 1.0] * len(found)
            same += [bundle(option) == current for option in found] if current else [False] * len(found)
        stays = np.array(same, bool)
        gains = np.where(stays, 1.0, kept) * rates / worst
        costs: Floats = np.full(len(rates), CLIP)
        np.power(gains, self.power, out=costs, where=gains > 0)
        costs = np.minimum(costs, CLIP)
        if self.decimals is not None:
            costs = np.round(costs, self.decimals)
        costs += np.where(stays, -self.change, self.change)
        return costs


def restart_factor(job: JobInfo, now: float) -> float:
    """Return the share of its life that a job would keep after one more restart.

    It is between 0 and 1.
    """
    age_s = now - job.submitted_at
    if age_s <= 0 or age_s < job.restart_s:
        return 1.0
    return max(age_s - job.restarts * job.restart_s, 0.0) / (age_s + job.restart_s)


SIA = Sia()
