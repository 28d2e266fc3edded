"""The fluid, user-fair system: job ends if GPUs could be split without end.

All users with unfinished jobs share the GPUs by weight, and a user's jobs share the user's part
evenly. UWFQ's measures compare a policy with it. Source: Kazemaks et al., UWFQ, 2025
(docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple


class FluidJob(NamedTuple):
    """`work` in GPU-seconds, above 0; times in s."""

    at: float
    user: str
    work: float
    weight: float = 1.0


class _User:
    """An active user.

    served: GPU-seconds that each of its jobs would have got since the start.
    """

    __slots__ = ("due", "mark", "served", "version", "weight")

    def __init__(self, weight: float, mark: float) -> None:
        self.weight, self.mark = weight, mark
        self.served = 0.0
        self.due: list[tuple[float, int]] = []  # (served at which it ends, job)
        self.version = 0

    def bring(self, clock: float) -> None:
        """Bring the service up to the common clock.

        The clock counts GPU-seconds per unit of weight.
        """
        if self.due:
            self.served += (clock - self.mark) * self.weight / len(self.due)
        self.mark = clock

    def next_end(self) -> float:
        """The common clock at which its next job ends."""
        return self.mark + (self.due[0][0] - self.served) * len(self.due) / self.weight


def fluid_ends(jobs: Sequence[FluidJob], gpus: float) -> list[float]:
    """Return when each job ends (s), in the order of `jobs`.

    It takes about log(users) + log(jobs) steps a job.
    """
    fluid = _Fluid(gpus, len(jobs))
    for number in sorted(range(len(jobs)), key=lambda number: jobs[number].at):
        fluid.serve_until(jobs[number].at)
        fluid.arrive(number, jobs[number])
    fluid.serve_until(inf)
    return fluid.ends


class _Fluid:
    """The state of the fluid system.

    `clock` runs in GPU-seconds per unit of weight; a user's entry in `heap` is stale once it
    changed.
    """

    def __init__(self, gpus: float, jobs: int) -> None:
        self.gpus, self.ends = gpus, [0.0] * jobs
        self.now = self.clock = 0.0
        self.users: dict[str, _User] = {}
        self.active: dict[str, float] = {}  # weights of the users with unfinished jobs
        self.weights = 0.0
        self.heap: list[tuple[float, str, int]] = []  # (clock of its next end, user, its version)

    def serve_until(self, to: float) -> None:
        """End all jobs that end by this time."""
        while self.active:
            clock, name, version = self.heap[0]
            if version != self.users[name].version:
                heappop(self.heap)
                continue
            end_at = self.now + (clock - self.clock) * self.weights / self.gpus
            if end_at > to:
                self.clock += (to - self.now) * self.gpus / self.weights
                break
            self.now, self.clock = end_at, clock
            self._end(name)
        self.now = to

    def arrive(self, number: int, job: FluidJob) -> None:
        user = self.users.get(job.user)
        if user is None:
            user = self.users[job.user] = _User(job.weight, self.clock)
        user.bring(self.clock)
        heappush(user.due, (user.served + job.work, number))
        self._changed(job.user, user)

    def _end(self, name: str) -> None:
        user = self.users[name]
        user.bring(self.clock)
        _, number = heappop(user.due)
        self.ends[number] = self.now
        self._changed(name, user)

    def _changed(self, name: str, user: _User) -> None:
        user.version += 1
        if user.due:
            heappush(self.heap, (user.next_end(), name, user.version))
            if name not in self.active:
                self.active[name] = user.weight
                self.weights += user.weight
        else:
            del self.active[name]
            self.weights = self.weights - user.weight if self.active else 0.0
