"""User weighted fair queuing: jobs in the order of a fluid, user-fair system.

The order is that in which such a system would end them. `uwfq` cuts runs into segments that end
with a checkpoint; only there may a job with an earlier virtual deadline take the GPUs, and only
from a job whose restart costs less than a tenth of a segment. `uwfq-whole` never stops a job.
Idle GPUs go to the next job that fits. Work is predicted GPU-seconds, and a wrong estimate is
corrected when the prediction changes. Source: scheduler.core.ordering.fair_queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranking import Ranking
from scheduler.core.cycle.reserving import decide_in_order
from scheduler.core.ordering.fair_queue import FairQueue
from scheduler.core.remaining_work import remaining_gpu_s
from scheduler.core.types import ClusterState, Description, Plan

SEGMENT_S = 900.0
CHANGED = 0.1  # a prediction that moved by more than this share corrects the queue
BEHIND = "Users who received less than their share go first."


@dataclass(frozen=True, slots=True, kw_only=True)
class Uwfq:
    name: str
    description: Description
    rules: CycleOptions = field(default_factory=lambda: CycleOptions(blocks=HeadOfLine.NOTHING))
    round_s: float | None = None

    @property
    def preempts(self) -> bool:
        return self.rules.preempts

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs by their virtual deadlines; ties go to the earlier submission."""
        left = {job.id: remaining_gpu_s(job) for job in state.jobs}
        queue = self.queue(state, left, now)
        order = self.ranking(state, queue)
        actions, reservation = decide_in_order(order, state, now, self.rules, BEHIND)
        queue.ended = {job: end for job, end in queue.ended.items() if job in left}
        return Plan(actions, {**queue.as_memory(), **reservation})

    def ranking(self, state: ClusterState, queue: FairQueue) -> Ranking:
        """The jobs by their virtual deadlines."""
        deadlines = queue.deadlines()
        return Ranking(state, lambda job: (deadlines.get(job.id, inf),), self.rules)

    def queue(self, state: ClusterState, left: Mapping[str, float], now: float) -> FairQueue:
        """Return the virtual queue at `now`.

        It includes the jobs that came since, in their order, and corrected predictions. One that was there
        at the last decision, but may be considered only now, comes now. left: GPU-seconds of each job.
        """
        jobs = [job for job in state.jobs if isfinite(left[job.id])]
        gpus = float(sum(node.total for node in state.nodes if node.ready))
        new = not state.memory
        queue = FairQueue.from_memory(state.memory)
        queue.at = min((job.submitted_at for job in jobs), default=now) if new else queue.at
        seen_at = queue.at
        came = {job.id: job.submitted_at if job.submitted_at >= seen_at else now for job in jobs}
        for job in sorted(jobs, key=lambda job: (came[job.id], job.submitted_at, job.id)):
            work = job.attained_gpu_s + left[job.id]
            expected = queue.expected(job.id, job.user)
            if expected is None and job.id not in queue.ended:
                queue.advance(max(min(came[job.id], now), queue.at), gpus)
                queue.submit(job.id, job.user, work, job.weight)
            elif _moved(expected, work):
                queue.correct(job.id, job.user, work)
        queue.advance(max(now, queue.at), gpus)
        return queue


def _moved(expected: float | None, work: float) -> bool:
    return expected is not None and abs(work - expected) > CHANGED * expected


SEGMENTED = Uwfq(
    name="uwfq",
    description=Description(
        summary="Fair between users by GPU time, in segments; stops jobs at a checkpoint between segments.",
        order="virtual deadlines of a user-fair fluid system; stops jobs at the ends of segments of 900 s",
        needs="durations, running jobs",
        source="Kažemaks et al. 2025",
    ),
    rules=CycleOptions(blocks=HeadOfLine.NOTHING, preempts=True, segment_s=SEGMENT_S),
    round_s=60.0,
)
WHOLE = Uwfq(
    name="uwfq-whole",
    description=Description(
        summary="Fair between users: jobs in the order in which an evenly shared cluster would end them.",
        order="virtual deadlines of a user-fair fluid system, without segments",
        needs="durations, running jobs",
        source="Kažemaks et al. 2025",
    ),
)
