"""The order in which a decision meets the jobs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property

from scheduler.core.cycle.options import CycleOptions
from scheduler.core.types import ClusterState, JobInfo

Rank = tuple[float, ...]
Place = tuple[float, Rank, bool, float, str]


class Ranking:
    """Jobs, best first.

    They may come and go from one decision to the next if their ranks stay. The larger priority goes first,
    then the smaller rank, the job that runs, the earlier submission, the smaller id. Running jobs are in it
    only where they may be stopped, favoured by the rules' hysteresis.
    """

    def __init__(self, state: ClusterState, key: Callable[[JobInfo], Rank], rules: CycleOptions) -> None:
        self._key, self._hysteresis = key, rules.hysteresis
        self._jobs = sorted(state.jobs if rules.preempts else state.waiting, key=self.place)

    def __iter__(self) -> Iterator[JobInfo]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def place(self, job: JobInfo, more: float = 0.0) -> Place:
        """Where the job belongs: the smaller one goes first.

        more: added to the first figure of its rank.
        """
        rank = self._key(job)
        if more:
            rank = (rank[0] + more, *rank[1:])
        if job.holds and self._hysteresis:
            rank = (rank[0] / (1 + self._hysteresis), *rank[1:])
        return -job.priority, rank, job.holds is None, job.submitted_at, job.id

    def level(self, job: JobInfo) -> tuple[float, Rank]:
        """A key that is equal for jobs between which the policy sees no difference."""
        return self.place(job)[:2]

    def add(self, job: JobInfo) -> Place:
        """Put a job where it belongs, and say where that is."""
        place = self._place_of[job.id] = self.place(job)
        at = bisect_left(self._places, place)
        self._places.insert(at, place)
        self._jobs.insert(at, job)
        return place

    def remove(self, job_id: str) -> bool:
        """Take a job out if it is there, and say whether it was."""
        place = self._place_of.pop(job_id, None)
        if place is None:
            return False
        at = bisect_left(self._places, place)
        del self._places[at], self._jobs[at]
        return True

    # Needed only by a ranking that changes, and not by one that is gone through once.

    @cached_property
    def _places(self) -> list[Place]:
        return [self.place(job) for job in self._jobs]

    @cached_property
    def _place_of(self) -> dict[str, Place]:
        return {place[-1]: place for place in self._places}
