"""Interference of neighbours on the same nodes.

It is a job's pace beside others, as a share of its pace alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.runs import Run


class ColocatedJob(NamedTuple):
    """A job and the number of nodes it is on."""

    job: TraceJob
    nodes: int


Slowdown = Callable[
    [ColocatedJob, ColocatedJob], float
]  # (a job, its neighbour) -> share of the pace that is left


def across_nodes(share: float) -> Slowdown:
    """Return Pollux' interference (OSDI'21) for jobs over several nodes.

    Such jobs lose this share where two of them meet.
    """

    def factor(tenant: ColocatedJob, neighbour: ColocatedJob) -> float:
        return 1.0 - share if tenant.nodes > 1 and neighbour.nodes > 1 else 1.0

    return factor


@dataclass(slots=True)
class Colocation:
    """Jobs that share nodes.

    A job's factor is the worst that any of its neighbours causes.
    """

    slowdown: Slowdown
    _on_node: dict[str, dict[str, Run]] = field(default_factory=lambda: defaultdict(dict))

    def joins(self, run: Run) -> Iterable[tuple[Run, float]]:
        """Add a job and return all jobs whose factor may have changed, with the factor.

        The newcomer is included.
        """
        for node in _nodes(run):
            self._on_node[node][run.job.job_id] = run
        return self._factors(run)

    def leaves(self, run: Run) -> Iterable[tuple[Run, float]]:
        """Call while the run still names its GPUs."""
        for node in _nodes(run):
            self._on_node[node].pop(run.job.job_id, None)
        changed = self._factors(run)
        run.factor = 1.0
        return [(other, factor) for other, factor in changed if other is not run]

    def _factors(self, run: Run) -> list[tuple[Run, float]]:
        met = {name: other for node in _nodes(run) for name, other in self._on_node[node].items()}
        return [(other, self._factor(other)) for other in met.values()]

    def _factor(self, run: Run) -> float:
        nodes = _nodes(run)
        others = {name: other for node in nodes for name, other in self._on_node[node].items()}
        others.pop(run.job.job_id, None)
        tenant = ColocatedJob(run.job, len(nodes))
        beside = [ColocatedJob(other.job, len(_nodes(other))) for other in others.values()]
        return min((self.slowdown(tenant, neighbour) for neighbour in beside), default=1.0)


def _nodes(run: Run) -> set[str]:
    return {node for node, _ in run.gpus}
