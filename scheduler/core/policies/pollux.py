"""Pollux, as a baseline: a genetic search for the best power mean of speed-ups.

Fitness is the power mean (p = -1) over jobs of restart factor times speed-up, where speed-up is
goodput over goodput on a fair share of the GPUs. An individual says which option each job has,
or none; the authors search GPU counts by node and repair afterwards, here nodes are filled once
the search is over. The search knows no GPU types beyond what the options say. The generator is
seeded, so equal states give equal plans.
Source: Qiao et al., Pollux, OSDI 2021, and AdaptDL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from knowledge.core.domain.types import Option
from scheduler.core.divide.bundles import bundle
from scheduler.core.divide.capacity import Capacity, uses
from scheduler.core.divide.repack import divide
from scheduler.core.placement.fit import Placement
from scheduler.core.policies.sia import restart_factor
from scheduler.core.remaining_work import known_rates
from scheduler.core.types import ClusterState, Description, JobInfo, Plan

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
IDLE = 1e-2  # speed-up of a job without GPUs: 0 would make all allocations that leave one out equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Pollux:
    name: str = "pollux"
    description: ClassVar[Description] = Description(
        summary="A genetic search for the division with the best speed-up for all; for comparison.",
        order="genetic search, power mean of speed-ups; resizes jobs; a baseline",
        needs="tokens/s of each option",
        source="Pollux, OSDI 2021",
    )
    preempts: bool = True
    rules: ClassVar[None] = None
    round_s: float | None = 60.0
    power: float = -1.0
    individuals: int = 100
    generations: int = 100
    seed: int = 0
    placement: Placement = Placement.BEST_FIT

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Divide the GPUs among all jobs, larger priorities first."""
        return divide(state, now, partial(self.choose, now=now), self.placement)

    def choose(
        self, jobs: Sequence[JobInfo], options: Sequence[Sequence[Option]], supply: Capacity, now: float
    ) -> list[tuple[JobInfo, Option]]:
        """Jobs with the options they should have; a missing job should have none."""
        search = _Search(jobs, options, supply, now, self.power, np.random.default_rng(self.seed))
        best = search.run(self.individuals, self.generations)
        chosen = zip(jobs, options, best, strict=True)
        return [(job, found[gene - 1]) for job, found, gene in chosen if gene]


class _Search:
    """The genetic search over the options of all jobs.

    Gene 0 stands for no GPUs, gene k for the job's k-th option. Tables are of shape (jobs, most
    options + 1).
    """

    def __init__(
        self,
        jobs: Sequence[JobInfo],
        options: Sequence[Sequence[Option]],
        supply: Capacity,
        now: float,
        power: float,
        rng: np.random.Generator,
    ) -> None:
        self.rng, self.power = rng, power
        self.limits = np.array(list(supply.gpus.values()), np.int64)
        width = 1 + max(map(len, options), default=0)
        self.counts = np.array([len(found) for found in options], np.int64)
        self.value = np.full((len(jobs), width), IDLE)
        self.uses = np.zeros((len(self.limits), len(jobs), width), np.int64)
        self.current = np.zeros(len(jobs), np.int64)
        for row, (job, found) in enumerate(zip(jobs, options, strict=True)):
            known = known_rates(found)
            fair = _fair(found, known, _usable(found, supply) / len(jobs))
            self.uses[:, row, 1 : 1 + len(found)] = uses(found, supply)
            for gene, (option, rate) in enumerate(zip(found, known, strict=True), 1):
                stays = job.holds is not None and bundle(job.holds.option) == bundle(option)
                factor = 1.0 if stays or not job.holds else restart_factor(job, now)
                self.value[row, gene] = max(factor * rate / fair, IDLE)
                self.current[row] = gene if stays else self.current[row]
        self.rows = np.arange(len(jobs))

    def run(self, individuals: int, generations: int) -> list[int]:
        """Return the fittest individual of the last generation.

        The first generation includes the present allocation and the smallest option of every
        job.
        """
        if not len(self.rows) or not self.counts.any():
            return [0] * len(self.rows)
        people = self._repair(self._random((individuals, len(self.rows))))
        people[0] = self._repair(self.current[None, :])[0]
        people[1] = self._repair(np.minimum(1, self.counts)[None, :])[0]
        for _ in range(generations):
            children = self._repair(self._mutate(self._cross(people)))
            everybody = np.concatenate([people, children])
            fittest = np.argsort(-self._fitness(everybody), kind="stable")[:individuals]
            people = everybody[fittest]
        return [int(gene) for gene in people[0]]

    def _fitness(self, people: Ints) -> Floats:
        speedups = self.value[self.rows, people]
        return np.asarray((speedups**self.power).mean(axis=1) ** (1 / self.power))

    def _random(self, shape: tuple[int, int]) -> Ints:
        return np.asarray(self.rng.integers(0, self.counts + 1, shape))

    def _cross(self, people: Ints) -> Ints:
        partners = people[self.rng.permutation(len(people))]
        return np.where(self.rng.random(people.shape) < 0.5, people, partners)

    def _mutate(self, people: Ints) -> Ints:
        changes = self.rng.random(people.shape) < 1 / len(self.rows)
        return np.where(changes, self._random((people.shape[0], people.shape[1])), people)

    def _repair(self, people: Ints) -> Ints:
        """Give no GPUs to jobs that exceed what is left within a limit.

        The jobs are taken in a random order.
        """
        order = self.rng.permuted(np.broadcast_to(self.rows, people.shape), axis=1)
        genes = np.take_along_axis(people, order, axis=1)
        kept = np.ones(people.shape, bool)
        for table, limit in zip(self.uses, self.limits, strict=True):
            used = table[order, genes]
            kept &= (used == 0) | (np.cumsum(used, axis=1) <= limit)
        repaired = np.empty_like(people)
        np.put_along_axis(repaired, order, np.where(kept, genes, 0), axis=1)
        return repaired


def _usable(options: Sequence[Option], supply: Capacity) -> int:
    """GPUs that a job with these options could be given, were it alone."""
    tuning = options[0].config.tuning if options else ""
    return sum(supply.usable(model, tuning) for model in supply.models)


def _fair(options: Sequence[Option], known: Sequence[float], gpus: float) -> float:
    """Goodput of the best option within a fair share, or of the smallest one."""
    places = list(zip(options, known, strict=True))
    within = [rate for option, rate in places if option.gpus <= gpus]
    smallest = min(places, key=lambda place: place[0].gpus, default=(None, 1.0))
    rate = max(within, default=smallest[1])
    return rate if rate > 0 else 1.0


POLLUX = Pollux()
