"""The fluid, user-fair system: job ends if GPUs could be split without end.

All users with unfinished jobs share the GPUs by weight, and a user's jobs share the user's part
evenly. UWFQ's measures compare a policy with it. Source: Kazemaks et al., UWFQ, 2025
(docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from itertools import count
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
    ends_at: when its next job ends, by the common clock, which counts GPU-seconds per unit of weight.
    """

    __slots__ = ("due", "ends_at", "mark", "name", "noted", "served", "weight")

    def __init__(self, name: str, weight: float, mark: float) -> None:
        self.name, self.weight, self.mark = name, weight, mark
        self.served = 0.0
        self.due: list[tuple[float, int]] = []  # (served at which it ends, job)
        self.ends_at = self.noted = inf

    def begin(self, number: int, work: float, clock: float) -> None:
        """It has a job more."""
        due = self.due
        if due:
            self.served += (clock - self.mark) * self.weight / len(due)
        self.mark = clock
        heappush(due, (self.served + work, number))
        self.ends_at = clock + (due[0][0] - self.served) * len(due) / self.weight

    def end(self, clock: float) -> int:
        """End the next job, and return it."""
        due = self.due
        self.served += (clock - self.mark) * self.weight / len(due)
        self.mark = clock
        _, number = heappop(due)
        self.ends_at = clock + (due[0][0] - self.served) * len(due) / self.weight if due else inf
        return number


# Clock, name and a number, so that users are never compared.
_Entry = tuple[float, str, int, _User]


def fluid_ends(jobs: Sequence[FluidJob], gpus: float) -> list[float]:
    """Return when each job ends (s), in the order of `jobs`.

    It takes about log(users) + log(jobs) steps a job.
    """
    fluid = _Fluid(gpus, len(jobs))
    for number in sorted(range(len(jobs)), key=[job.at for job in jobs].__getitem__):
        fluid.arrive(number, jobs[number])
    fluid.serve_until(inf)
    return fluid.ends


class _Fluid:
    """The state of the fluid system.

    `clock` runs in GPU-seconds per unit of weight. Each active user is in the heap at the clock that it
    `noted`; its next job ends later where others came since. Entries at other clocks are stale.
    """

    def __init__(self, gpus: float, jobs: int) -> None:
        self.gpus, self.ends = gpus, [0.0] * jobs
        self.now = self.clock = 0.0
        self.users: dict[str, _User] = {}
        self.active = 0  # users with unfinished jobs
        self.weights = 0.0  # theirs
        self.heap: list[_Entry] = []
        self._numbers = count()

    def serve_until(self, to: float) -> None:
        """End all jobs that end by this time."""
        heap = self.heap
        while self.active:
            clock, _, _, user = heap[0]
            end_at = self.now + (clock - self.clock) * self.weights / self.gpus
            if end_at > to:
                self.clock += (to - self.now) * self.gpus / self.weights
                break
            if clock != user.noted:
                heappop(heap)
                continue
            if clock == user.ends_at:
                self.now, self.clock = end_at, clock
                self.ends[user.end(clock)] = end_at
            if user.due:
                heapreplace(heap, self._note(user))
            else:
                heappop(heap)
                user.noted = inf
                self.active -= 1
                self.weights = self.weights - user.weight if self.active else 0.0
        self.now = to

    def arrive(self, number: int, job: FluidJob) -> None:
        """A job comes, after all that end before."""
        self.serve_until(job.at)
        user = self.users.get(job.user)
        if user is None:
            user = self.users[job.user] = _User(job.user, job.weight, self.clock)
        if not user.due:
            self.active += 1
            self.weights += user.weight
        user.begin(number, job.work, self.clock)
        if user.ends_at < user.noted:
            heappush(self.heap, self._note(user))

    def _note(self, user: _User) -> _Entry:
        user.noted = user.ends_at
        return user.ends_at, user.name, next(self._numbers), user
