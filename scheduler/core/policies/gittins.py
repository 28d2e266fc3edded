"""2D-Gittins: prefer the job most likely to end soon for the service it takes.

The chance and the service are those within the next quantum. The policy knows only how much
service past jobs needed in all (GPU-seconds), never which job is which. The history is the
policy's memory: a job that is gone has ended with the service it had attained when last seen.
Without history this is least attained service. Source: Gu et al., Tiresias, NSDI 2019.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import Any, ClassVar

from scheduler.core.cycle.cycle import Cycle
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranking import Rank, Ranking
from scheduler.core.types import ClusterState, Description, JobInfo, Plan

QUANTUM_GPU_S = 3600.0
REMEMBERED = 1000  # services of the jobs that ended last


@dataclass(frozen=True, slots=True, kw_only=True)
class Gittins:
    """`history`: services known from the start, GPU-seconds."""

    name: str = "gittins"
    description: ClassVar[Description] = Description(
        summary="The job most likely to end soon for the GPU time it takes, judging by past jobs; stops"
        " running jobs.",
        order="likeliest to end within the next 3,600 GPU-s, by past jobs",
        needs="history (its memory)",
        source="Tiresias, NSDI 2019",
    )
    quantum: float = QUANTUM_GPU_S
    history: tuple[float, ...] = ()
    rules: CycleOptions = field(
        default_factory=lambda: CycleOptions(blocks=HeadOfLine.NOTHING, preempts=True, hysteresis=0.1)
    )
    preempts: bool = True
    round_s: float | None = 60.0

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs by their index, stopping those with a clearly smaller one."""
        memory = self._learnt(state)
        order = self.ranking(state, memory["ended"])
        return Plan(Cycle(state, now, self.rules).run(order), memory)

    def ranking(self, state: ClusterState, ended: Sequence[float]) -> Ranking:
        """The jobs by their index. ended: services of past jobs."""
        services = Services(ended)

        def key(job: JobInfo) -> Rank:
            index = services.index(job.attained_gpu_s, self.quantum)
            return (1 / index if index else inf, job.attained_gpu_s)

        return Ranking(state, key, self.rules)

    def _learnt(self, state: ClusterState) -> dict[str, Any]:
        memory: Mapping[str, Any] = state.memory
        seen = {job.id: job.attained_gpu_s for job in sorted(state.jobs, key=lambda job: job.id)}
        gone = [service for job, service in memory.get("seen", {}).items() if job not in seen and service]
        ended = [*memory.get("ended", self.history), *gone]
        return {"seen": seen, "ended": ended[-REMEMBERED:]}


class Services:
    """The distribution of total service D over jobs that ended."""

    def __init__(self, history: Sequence[float]) -> None:
        self.sorted = sorted(history)
        self.sums = [0.0, *accumulate(self.sorted)]

    def index(self, attained: float, quantum: float) -> float:
        """Return P(D <= a + quantum | D > a) / E[min(D - a, quantum) | D > a].

        It is 0 where no job needed more.
        """
        beyond = bisect_right(self.sorted, attained)
        within = bisect_right(self.sorted, attained + quantum)
        count = len(self.sorted)
        if beyond == count:
            return 0.0
        served = self.sums[within] - self.sums[beyond] - attained * (within - beyond)
        return (within - beyond) / (served + quantum * (count - within))


GITTINS = Gittins()
