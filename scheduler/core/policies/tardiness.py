"""Deadlines: low total tardiness over the jobs that have a due time.

The others follow in their order. The cluster counts as one lane: a job takes its predicted
GPU-seconds over all GPUs. No job is stopped. `edd` is earliest due date, `mdd` modified due
date, `mddc` the better of MDD and its corrected form by predicted total tardiness (MDDC is
worse on slack instances). Source: scheduler.core.ordering.tardiness_rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from scheduler.core.cycle.options import CycleOptions
from scheduler.core.cycle.ranking import Ranking
from scheduler.core.cycle.reserving import decide_in_order
from scheduler.core.ordering.tardiness_rules import Floats, edd, mdd, mddc, tardiness
from scheduler.core.remaining_work import remaining_gpu_s
from scheduler.core.types import ClusterState, Description, JobInfo, Plan

Order = Callable[[Floats, Floats, float], list[int]]
BEHIND = "Jobs whose due time is closer go first."


@dataclass(frozen=True, slots=True)
class Tardiness:
    name: str
    order: Order
    description: Description
    rules: CycleOptions = field(default_factory=CycleOptions)
    preempts: bool = False
    round_s: float | None = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs in the order of the sequence."""
        turn = self.sequence(state, now)
        ranked = Ranking(state, lambda job: (turn.get(job.id, len(turn)),), self.rules)
        actions, reservation = decide_in_order(ranked, state, now, self.rules, BEHIND)
        return Plan(actions, reservation)

    def sequence(self, state: ClusterState, now: float) -> dict[str, int]:
        """The turn of each waiting job with a due time."""
        gpus = sum(node.total for node in state.nodes if node.ready) or 1
        due = sorted(filter(_is_due, state.waiting), key=lambda job: (job.submitted_at, job.id))
        if not due:
            return {}
        p = np.array([remaining_gpu_s(job) / gpus for job in due])
        d = np.array([job.due_at for job in due], float) - now
        committed = sum(filter(isfinite, map(remaining_gpu_s, state.running))) / gpus
        return {due[index].id: turn for turn, index in enumerate(self.order(p, d, committed))}


def _is_due(job: JobInfo) -> bool:
    return job.due_at is not None and isfinite(remaining_gpu_s(job))


def _edd(p: Floats, d: Floats, _start: float) -> list[int]:
    return edd(p, d)


def better_of_both(p: Floats, d: Floats, start: float) -> list[int]:
    """MDD's or MDDC's order, whichever promises less tardiness."""
    return min((mdd(p, d, start), mddc(p, d, start)), key=lambda order: tardiness(order, p, d, start))


EDD = Tardiness(
    "edd",
    _edd,
    Description(
        summary="The job with the earliest deadline first; jobs without a deadline come last.",
        order="earliest due time",
        needs="durations, due times",
        source="classic",
    ),
)
MDD = Tardiness(
    "mdd",
    mdd,
    Description(
        summary="The earliest deadline first; a late job counts as due at its earliest possible end.",
        order="least modified due date, max(t + p, d)",
        needs="durations, due times",
        source="Çetinkaya et al. 2025",
    ),
)
MDDC = Tardiness(
    "mddc",
    better_of_both,
    Description(
        summary="The order of mdd or its corrected form, whichever is predicted to be less late overall.",
        order="MDD or its corrected form, whichever promises less tardiness",
        needs="durations, due times",
        source="Çetinkaya et al. 2025",
    ),
)
