"""GPUs that a policy divides.

They are counted for each model and, within it, for nodes that can train by a tuning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knowledge.core.domain.types import Option
from scheduler.core.types import ClusterState, JobInfo, NodeInfo

Limit = tuple[str, str]  # (GPU model, tuning); the tuning "" stands for all of them


@dataclass(slots=True)
class Capacity:
    """Free GPUs under each limit.

    A tuning has a limit of its own only where not all nodes of the model can train it.
    """

    gpus: dict[Limit, int]

    @classmethod
    def of(cls, state: ClusterState, jobs: Iterable[JobInfo]) -> Capacity:
        """Return the GPUs of ready nodes that can be divided among these jobs.

        These are the free GPUs and the jobs' own.
        """
        ready = {(node.id, node.gpu_model): node for node in state.nodes if node.ready}
        lacking = {(node.gpu_model, tuning) for node in ready.values() for tuning in node.cannot_train}
        free: Counter[tuple[str, str]] = Counter()
        for place, node in ready.items():
            free[place] += len(node.free)
        for job in jobs:
            if job.holds:
                free.update((node, job.holds.option.gpu_model) for node, _ in job.holds.gpus)
        # In one order in every process: what a solver finds depends on that of its rows.
        supply = cls({(model, ""): 0 for _, model in ready} | dict.fromkeys(sorted(lacking), 0))
        for place, node in ready.items():
            for limit in _limits_of(node, lacking):
                supply.gpus[limit] += free[place]
        return supply

    @property
    def models(self) -> list[str]:
        """The GPU models, in order."""
        return sorted(model for model, tuning in self.gpus if not tuning)

    def limits(self, option: Option) -> tuple[Limit, ...]:
        """The limits that the option's GPUs count against."""
        model, tuning = option.config.gpu_model, option.config.tuning
        of_model, of_tuning = (model, ""), (model, tuning)
        return (of_model, of_tuning) if of_tuning != of_model and of_tuning in self.gpus else (of_model,)

    def usable(self, model: str, tuning: str) -> int:
        """GPUs of the model that a job with this tuning can use."""
        return self.gpus.get((model, tuning), self.gpus[model, ""])

    def has(self, option: Option) -> bool:
        """Is enough left for the option?"""
        return option.gpus <= min(map(self.gpus.__getitem__, self.limits(option)))

    def take(self, option: Option) -> None:
        """Count the option's GPUs as given away."""
        for limit in self.limits(option):
            self.gpus[limit] -= option.gpus


def uses(options: Sequence[Option], supply: Capacity) -> NDArray[np.int64]:
    """Shape (limits, options): the GPUs of each option that count against each limit."""
    kinds = [(option.config.gpu_model, option.config.tuning) for option in options]
    examples = dict(zip(kinds, options, strict=True))
    counted = {kind: [limit in supply.limits(one) for limit in supply.gpus] for kind, one in examples.items()}
    numbers = {kind: number for number, kind in enumerate(counted)}
    of_kind = np.array(list(counted.values()), np.int64).reshape(len(counted), len(supply.gpus)).T
    gpus = np.array([option.config.number_gpus for option in options], np.int64)
    return of_kind[:, [numbers[kind] for kind in kinds]] * gpus


def _limits_of(node: NodeInfo, lacking: Iterable[Limit]) -> Iterator[Limit]:
    yield node.gpu_model, ""
    for model, tuning in lacking:
        if model == node.gpu_model and tuning not in node.cannot_train:
            yield model, tuning
