"""GPUs that a policy divides.

They are counted for each model and, within it, for nodes that can train by a method.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knowledge.core.domain.types import Option
from scheduler.core.types import ClusterState, JobInfo, NodeInfo

Limit = tuple[str, str]  # (GPU model, method); the method "" stands for all of them


@dataclass(slots=True)
class Capacity:
    """Free GPUs under each limit.

    A method has a limit of its own only where not all nodes of the model can train it.
    """

    gpus: dict[Limit, int]

    @classmethod
    def of(cls, state: ClusterState, jobs: Iterable[JobInfo]) -> Capacity:
        """Return the GPUs of ready nodes that can be divided among these jobs.

        These are the free GPUs and the jobs' own.
        """
        ready = {(node.id, node.gpu_model): node for node in state.nodes if node.ready}
        lacking = {(node.gpu_model, method) for node in ready.values() for method in node.cannot_train}
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
        return sorted(model for model, method in self.gpus if not method)

    def limits(self, option: Option) -> tuple[Limit, ...]:
        """The limits that the option's GPUs count against."""
        model, method = option.config.gpu_model, option.config.method
        of_model, of_method = (model, ""), (model, method)
        return (of_model, of_method) if of_method != of_model and of_method in self.gpus else (of_model,)

    def usable(self, model: str, method: str) -> int:
        """GPUs of the model that a job with this method can use."""
        return self.gpus.get((model, method), self.gpus[model, ""])

    def has(self, option: Option) -> bool:
        """Is enough left for the option?"""
        return option.gpus <= min(map(self.gpus.__getitem__, self.limits(option)))

    def take(self, option: Option) -> None:
        """Count the option's GPUs as given away."""
        for limit in self.limits(option):
            self.gpus[limit] -= option.gpus


def uses(options: Sequence[Option], supply: Capacity) -> NDArray[np.int64]:
    """Shape (limits, options): the GPUs of each option that count against each limit."""
    kinds = [(option.config.gpu_model, option.config.method) for option in options]
    examples = dict(zip(kinds, options, strict=True))
    counted = {kind: [limit in supply.limits(one) for limit in supply.gpus] for kind, one in examples.items()}
    numbers = {kind: number for number, kind in enumerate(counted)}
    of_kind = np.array(list(counted.values()), np.int64).reshape(len(counted), len(supply.gpus)).T
    gpus = np.array([option.config.number_gpus for option in options], np.int64)
    return of_kind[:, [numbers[kind] for kind in kinds]] * gpus


def _limits_of(node: NodeInfo, lacking: Iterable[Limit]) -> Iterator[Limit]:
    yield node.gpu_model, ""
    for model, method in lacking:
        if model == node.gpu_model and method not in node.cannot_train:
            yield model, method
