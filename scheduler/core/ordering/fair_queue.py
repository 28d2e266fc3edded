"""A virtual fair queue over users.

It tells when each job would end if every user had its share all the time; real service then
follows these virtual deadlines. A user's share never depends on how many jobs it submits.
Source: Kazemaks et al., user weighted fair queuing (UWFQ), 2025, and the authors' open code;
weights of users are an extension. Work is in GPU-seconds, time in seconds. A user is served when it is looked
at: global virtual time tells what it got since, so that a moment costs the users whom it touches.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, islice
from typing import Any


class Share:
    """An active user's unfinished jobs, and the start of its virtual stretch.

    `start` is where its stretch of global virtual time starts. `time` is the user's own virtual
    time; `jobs`: job -> (deadline in that time, work). `mark`: until when it is served, in global virtual
    time. `change`: the number of the last one that moved its end.
    """

    def __init__(
        self,
        weight: float,
        start: float,
        time: float = 0.0,
        jobs: Mapping[str, Sequence[float]] | None = None,
        mark: float | None = None,
    ) -> None:
        self.weight, self.start, self.time = weight, start, time
        self.mark = start if mark is None else mark
        self.jobs = {job: (deadline, work) for job, (deadline, work) in (jobs or {}).items()}
        self.order = sorted((deadline, job) for job, (deadline, _) in self.jobs.items())
        self.work = sum(work for _, work in self.jobs.values())
        self.change = 0

    @property
    def end(self) -> float:
        """When its last job ends, in global virtual time."""
        return self.start + self.work / self.weight

    def add(self, job: str, deadline: float, work: float) -> None:
        self.jobs[job] = (deadline, work)
        insort(self.order, (deadline, job))
        self.work += work

    def remove(self, job: str) -> None:
        deadline, work = self.jobs.pop(job)
        del self.order[bisect_left(self.order, (deadline, job))]
        self.work = self.work - work if self.jobs else 0.0

    def serve(self, until: float) -> dict[str, float]:
        """Share what the user gets until this global virtual time evenly among its jobs.

        Returns the jobs that end, with their virtual deadlines.
        """
        ended: dict[str, float] = {}
        served, self.mark = (until - self.mark) * self.weight, until
        while self.jobs:
            deadline, job = self.order[0]
            needed = (deadline - self.time) * len(self.jobs)
            if needed > served:
                self.time += served / len(self.jobs)
                break
            served -= needed
            self.time = deadline
            self.start += self.jobs[job][1] / self.weight
            self.remove(job)
            ended[job] = self.start
        return ended

    def deadlines(self) -> dict[str, float]:
        """The jobs' ends in global virtual time, one after the other."""
        ends = accumulate((self.jobs[job][1] / self.weight for _, job in self.order), initial=self.start)
        return {job: end for (_, job), end in zip(self.order, islice(ends, 1, None), strict=True)}

    def as_memory(self) -> dict[str, Any]:
        jobs = {job: list(pair) for job, pair in self.jobs.items()}
        return {"weight": self.weight, "start": self.start, "time": self.time, "jobs": jobs}


@dataclass(slots=True)
class FairQueue:
    """The virtual queue of all users.

    `now` is global virtual time, `at` real time; `ended`: virtual deadlines of jobs that were
    served.
    """

    now: float = 0.0
    at: float = 0.0
    users: dict[str, Share] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    # (end, user, number of its change): stale once the user has changed again, or has left
    _ends: list[tuple[float, str, int]] = field(default_factory=list, init=False, repr=False)
    _changes: int = field(default=0, init=False, repr=False)
    _weights: float | None = field(default=None, init=False, repr=False)  # None: to be summed up

    def __post_init__(self) -> None:
        for user in self.users:
            self._changed(user)

    def advance(self, to: float, gpus: float) -> None:
        """Serve all users until the real time `to` on this many GPUs.

        Users without work leave on the way.
        """
        while gpus and (leaving := self._first_to_leave()):
            left_at = self.at + (self.users[leaving].end - self.now) / self.share(gpus)
            if left_at > to:
                break
            self._step(left_at - self.at, gpus)
            share = self._served(leaving)
            self.ended |= share.deadlines()  # what rounding left over
            del self.users[leaving]
            self._weights = None
        self._step(to - self.at, gpus)

    def submit(self, job: str, user: str, work: float, weight: float = 1.0) -> None:
        """A job arrives at the present time."""
        if user not in self.users:
            self.users[user] = Share(weight, self.now)
            self._weights = None
        share = self._served(user)
        if share.weight != weight:
            share.weight, self._weights = weight, None
        share.add(job, share.time + work, work)
        self._changed(user)

    def correct(self, job: str, user: str, work: float) -> None:
        """A job's work turns out to be another than was expected."""
        if self.expected(job, user) is not None:
            share = self.users[user]
            deadline, expected = share.jobs[job]
            share.remove(job)
            share.add(job, max(deadline + work - expected, share.time), work)
            self._changed(user)

    def expected(self, job: str, user: str) -> float | None:
        """The work that an unfinished job is queued with."""
        if user not in self.users or job not in self.users[user].jobs:
            return None
        found = self._served(user).jobs.get(job)
        return found[1] if found else None

    def deadlines(self) -> dict[str, float]:
        """Virtual deadlines of all jobs, in global virtual time."""
        shares = [self._served(user) for user in self.users]
        found = dict(self.ended)
        for share in shares:
            found |= share.deadlines()
        return found

    def share(self, gpus: float) -> float:
        """GPUs of an active user per unit of weight."""
        if self._weights is None:
            self._weights = sum(share.weight for share in self.users.values())
        return gpus / self._weights

    def as_memory(self) -> dict[str, Any]:
        users = {user: self._served(user).as_memory() for user in self.users}
        return {"now": self.now, "at": self.at, "users": users, "ended": self.ended}

    @classmethod
    def from_memory(cls, memory: Mapping[str, Any]) -> FairQueue:
        """The inverse of `as_memory`; a new queue from empty memory."""
        now = memory.get("now", 0.0)
        users = {user: Share(**share, mark=now) for user, share in memory.get("users", {}).items()}
        return cls(now, memory.get("at", 0.0), users, dict(memory.get("ended", {})))

    def _served(self, user: str) -> Share:
        """An active user, served until now."""
        share = self.users[user]
        self.ended |= share.serve(self.now)
        return share

    def _changed(self, user: str) -> None:
        self._changes += 1
        share = self.users[user]
        share.change = self._changes
        heappush(self._ends, (share.end, user, share.change))

    def _first_to_leave(self) -> str | None:
        while self._ends:
            _, user, change = self._ends[0]
            if user in self.users and self.users[user].change == change:
                return user
            heappop(self._ends)
        return None

    def _step(self, seconds: float, gpus: float) -> None:
        if seconds > 0 and self.users and gpus:
            self.now += seconds * self.share(gpus)
        self.at += max(seconds, 0.0)
