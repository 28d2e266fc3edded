"""Weighted fair share: the user with the least GPU time per weight goes first.

Old use fades: it halves every `half_life_s`. It is charged for GPUs held, in GPU-seconds, and
within one decision jobs further down pay for their predicted time beforehand, so that nobody
takes all free GPUs at once. No job is stopped. Source: the classic decayed fair share (Kay and
Lauder, CACM 1988), as in Slurm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from math import isfinite, log
from typing import Any, ClassVar

from scheduler.core.cycle.cycle import Cycle
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.remaining_work import option_of, remaining_gpu_s
from scheduler.core.types import ClusterState, Description, JobInfo, Plan, Start

WEEK_S = 7 * 86_400.0
UNKNOWN_S = 3600.0  # charged per GPU beforehand where nothing is predicted
BEHIND = "Users who received less of their share go first."


@dataclass(frozen=True, slots=True, kw_only=True)
class Fair:
    name: str = "fair"
    description: ClassVar[Description] = Description(
        summary="The user who received the least GPU time recently goes first; older use counts less.",
        order="user with least decayed GPU time per weight, half-life 7 days",
        needs="running jobs",
        source="Kay and Lauder 1988",
    )
    half_life_s: float = WEEK_S
    rules: CycleOptions = field(default_factory=CycleOptions)
    preempts: bool = False
    round_s: float | None = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs in turns of their users, larger priorities first."""
        used = self.used(state.memory, now)
        actions = Cycle(state, now, self.rules, BEHIND).run(in_turns(state.waiting, used))
        started = {action.job: len(action.gpus) for action in actions if isinstance(action, Start)}
        held: dict[str, float] = defaultdict(float)
        for job in sorted(state.jobs, key=lambda job: job.id):
            held[job.user] += len(job.holds.gpus) if job.holds else started.get(job.id, 0)
        return Plan(actions, {"at": now, "used": used, "held": {user: n for user, n in held.items() if n}})

    def used(self, memory: Mapping[str, Any], now: float) -> dict[str, float]:
        """Return the decayed GPU-seconds of each user at `now`.

        They are the faded earlier use plus the use of the GPUs held since then.
        """
        if not memory:
            return {}
        rate = log(2) / self.half_life_s
        since_s = max(0.0, now - memory["at"])  # nobody gives back what they had when a clock is set back
        fade = 2 ** -(since_s / self.half_life_s)
        users = sorted({*memory["used"], *memory["held"]})
        return {
            user: memory["used"].get(user, 0.0) * fade + memory["held"].get(user, 0) * (1 - fade) / rate
            for user in users
        }


def in_turns(jobs: Iterable[JobInfo], used: Mapping[str, float]) -> list[JobInfo]:
    """Each user's jobs in their order, users taking turns by use per weight."""
    queues: dict[tuple[int, str], list[JobInfo]] = defaultdict(list)
    for job in sorted(jobs, key=lambda job: (job.submitted_at, job.id), reverse=True):
        queues[-job.priority, job.user].append(job)
    charged = dict(used)
    order: list[JobInfo] = []
    for priority in sorted({priority for priority, _ in queues}):
        users = [user for rank, user in queues if rank == priority]
        heap = [_turn(user, queues[priority, user], charged) for user in users]
        heapify(heap)
        while heap:
            user = heap[0][-1]
            job = queues[priority, user].pop()
            order.append(job)
            charged[user] = charged.get(user, 0.0) + _price(job)
            if queues[priority, user]:
                heapreplace(heap, _turn(user, queues[priority, user], charged))
            else:
                heappop(heap)
    return order


def _turn(user: str, queue: list[JobInfo], charged: Mapping[str, float]) -> tuple[float, float, str, str]:
    job = queue[-1]
    return charged.get(user, 0.0) / job.weight, job.submitted_at, job.id, user


def _price(job: JobInfo) -> float:
    price = remaining_gpu_s(job)
    option = option_of(job)
    return price if isfinite(price) else UNKNOWN_S * (option.gpus if option else 0)


FAIR = Fair()
