"""Random jobs of a history, planned before it is played."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import Topology
from scheduler.states import PriorityClass

SLOTS = 2  # of each node, unless its history says otherwise
CLOSE_SLOTS = 2  # that share a NUMA node, where sites are declared


@dataclass(frozen=True, slots=True)
class PlannedJob:
    at: int
    params: dict[str, int]  # with number_gpus: a gang of that size; without, the policy chooses
    priority: int
    owner: int
    due: int | None = None
    team: int | None = None
    after: int | None = None
    begins: int | None = None
    in_array: bool = False
    topology: Topology = Topology.AUTOMATIC
    level: TopologyLevel | None = None


def planned_job(rng: random.Random, at: int) -> PlannedJob:
    params = {"max_steps": rng.randint(10, 30) * 100}
    gpus = rng.choice([0, 0, 0, 1, 4])
    if gpus:
        params |= {"number_gpus": gpus, "number_nodes": -(-gpus // SLOTS)}
    priority = rng.choice([PriorityClass.NORMAL] * 4 + [PriorityClass.LOW, PriorityClass.HIGH])
    return PlannedJob(at, params, priority, rng.randrange(2))


def closely_planned_job(rng: random.Random, at: int) -> PlannedJob:
    """A job that chooses its GPUs, or a gang of which most ask for one NUMA node."""
    gpus = rng.choice([0, 1, 1, 2, 2, 2, 3])
    params = {"max_steps": rng.randint(10, 30) * 100} | ({"number_gpus": gpus} if gpus else {})
    priority = rng.choice([PriorityClass.LOW, PriorityClass.LOW, PriorityClass.NORMAL, PriorityClass.HIGH])
    asks = rng.choice([Topology.NONE, Topology.BEST_EFFORT, Topology.GUARANTEED, Topology.GUARANTEED])
    if gpus != CLOSE_SLOTS or asks is Topology.NONE:
        return PlannedJob(at, params, priority, rng.randrange(2))
    return PlannedJob(at, params, priority, rng.randrange(2), topology=asks, level=TopologyLevel.NUMA)


def under_rules(rng: random.Random, number: int, job: PlannedJob) -> PlannedJob:
    return replace(
        job,
        due=job.at + rng.randint(10**5, 2 * 10**5),
        team=rng.choice([0, 0, 1, None]),
        after=rng.choice([None, None, rng.randrange(number)]) if number else None,
        begins=rng.choice([None, None, None, job.at + 40]),
        in_array=number % 4 == 1,
    )
