"""The fluid, user-fair system: job ends if GPUs could be split without end.

All users with unfinished jobs share the GPUs by weight, and a user's jobs share the user's part
evenly. UWFQ's measures compare a policy with it. Source: Kazemaks et al., UWFQ, 2025
(docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from math import inf

from knowledge.core.records import record


@record(kw_only=False)
class FluidJob:
    """`work` in GPU-seconds, above 0; times in s."""

    at: float
    user: str
    work: float
    weight: float = 1.0


class _User:
    """An active user.

    served: GPU-seconds that each of its jobs would have got since the start.
    """

    __slots__ = ("due", "mark", "name", "served", "version", "weight")

    def __init__(self, name: str, weight: float, mark: float) -> None:
        self.name, self.weight, self.mark = name, weight, mark
        self.served = 0.0
        self.due: list[tuple[float, int]] = []  # (served at which it ends, job)
        self.version = 0

    def begin(self, number: int, work: float, clock: float) -> _Entry:
        """A job more; return the user's entry from now on.

        clock: the common one, which counts GPU-seconds per unit of weight.
        """
        due = self.due
        if due:
            self.served += (clock - self.mark) * self.weight / len(due)
        self.mark = clock
        heappush(due, (self.served + work, number))
        return self._entry()

    def end(self, clock: float) -> tuple[int, _Entry | None]:
        """End the next job; return it, and the user's entry if there are others."""
        due = self.due
        self.served += (clock - self.mark) * self.weight / len(due)
        self.mark = clock
        _, number = heappop(due)
        return number, self._entry() if due else None

    def _entry(self) -> _Entry:
        """With the common clock at which its next job ends."""
        self.version += 1
        clock = self.mark + (self.due[0][0] - self.served) * len(self.due) / self.weight
        return clock, self.name, self.version, self


_Entry = tuple[float, str, int, _User]  # a version names a user's entry, so that users are never compared


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
        self.active = 0  # users with unfinished jobs
        self.weights = 0.0  # theirs
        self.heap: list[_Entry] = []

    def serve_until(self, to: float) -> None:
        """End all jobs that end by this time."""
        heap = self.heap
        while self.active:
            clock, _, version, user = heap[0]
            if version != user.version:
                heappop(heap)
                continue
            end_at = self.now + (clock - self.clock) * self.weights / self.gpus
            if end_at > to:
                self.clock += (to - self.now) * self.gpus / self.weights
                break
            self.now, self.clock = end_at, clock
            number, entry = user.end(clock)
            self.ends[number] = end_at
            if entry:
                heapreplace(heap, entry)
            else:
                heappop(heap)
                self.active -= 1
                self.weights = self.weights - user.weight if self.active else 0.0
        self.now = to

    def arrive(self, number: int, job: FluidJob) -> None:
        user = self.users.get(job.user)
        if user is None:
            user = self.users[job.user] = _User(job.user, job.weight, self.clock)
        if not user.due:
            self.active += 1
            self.weights += user.weight
        heappush(self.heap, user.begin(number, job.work, self.clock))
