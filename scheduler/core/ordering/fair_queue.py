"""A virtual fair queue over users.

It tells when each job would end if every user had its share all the time; real service then
follows these virtual deadlines. A user's share never depends on how many jobs it submits.
Source: Kazemaks et al., user weighted fair queuing (UWFQ), 2025, and the authors' open code;
weights of users are an extension. Work is in GPU-seconds, time in seconds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any


class Share:
    """An active user's unfinished jobs, and the start of its virtual stretch.

    `start` is where its stretch of global virtual time starts. `time` is the user's own virtual
    time; `jobs`: job -> (deadline in that time, work).
    """

    def __init__(
        self,
        weight: float,
        start: float,
        time: float = 0.0,
        jobs: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self.weight, self.start, self.time = weight, start, time
        self.jobs = {job: (deadline, work) for job, (deadline, work) in (jobs or {}).items()}
        self.order = sorted((deadline, job) for job, (deadline, _) in self.jobs.items())
        self.work = sum(work for _, work in self.jobs.values())

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

    def serve(self, seconds: float, rate: float) -> dict[str, float]:
        """Share `rate` GPUs evenly among the jobs.

        Returns the jobs that end, with their virtual deadlines.
        """
        ended: dict[str, float] = {}
        while self.jobs:
            deadline, job = self.order[0]
            needed_s = (deadline - self.time) * len(self.jobs) / rate
            if needed_s > seconds:
                self.time += seconds * rate / len(self.jobs)
                break
            seconds -= needed_s
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

    def advance(self, to: float, gpus: float) -> None:
        """Serve all users until the real time `to` on this many GPUs.

        Users without work leave on the way.
        """
        while self.users and gpus:
            name = min(self.users, key=lambda user: (self.users[user].end, user))
            left_at = self.at + (self.users[name].end - self.now) / self.share(gpus)
            if left_at > to:
                break
            self._step(left_at - self.at, gpus)
            leaving = self.users.pop(name)
            self.ended |= leaving.deadlines()  # what rounding left over
        self._step(to - self.at, gpus)

    def submit(self, job: str, user: str, work: float, weight: float = 1.0) -> None:
        """A job arrives at the present time."""
        share = self.users.setdefault(user, Share(weight, self.now))
        share.weight = weight
        share.add(job, share.time + work, work)

    def correct(self, job: str, user: str, work: float) -> None:
        """A job's work turns out to be another than was expected."""
        share = self.users.get(user)
        if share and job in share.jobs:
            deadline, expected = share.jobs[job]
            share.remove(job)
            share.add(job, max(deadline + work - expected, share.time), work)

    def expected(self, job: str, user: str) -> float | None:
        """The work that an unfinished job is queued with."""
        share = self.users.get(user)
        return share.jobs[job][1] if share and job in share.jobs else None

    def knows(self, job: str, user: str) -> bool:
        return job in self.ended or self.expected(job, user) is not None

    def deadlines(self) -> dict[str, float]:
        """Virtual deadlines of all jobs, in global virtual time."""
        found = dict(self.ended)
        for share in self.users.values():
            found |= share.deadlines()
        return found

    def share(self, gpus: float) -> float:
        """GPUs of an active user per unit of weight."""
        return gpus / sum(share.weight for share in self.users.values())

    def as_memory(self) -> dict[str, Any]:
        users = {user: share.as_memory() for user, share in self.users.items()}
        return {"now": self.now, "at": self.at, "users": users, "ended": self.ended}

    @classmethod
    def from_memory(cls, memory: Mapping[str, Any]) -> FairQueue:
        """The inverse of `as_memory`; a new queue from empty memory."""
        users = {user: Share(**share) for user, share in memory.get("users", {}).items()}
        return cls(memory.get("now", 0.0), memory.get("at", 0.0), users, dict(memory.get("ended", {})))

    def _step(self, seconds: float, gpus: float) -> None:
        if seconds > 0 and self.users and gpus:
            share = self.share(gpus)
            for user in self.users.values():
                self.ended |= user.serve(seconds, share * user.weight)
            self.now += seconds * share
        self.at += max(seconds, 0.0)
