"""The order in which a decision meets the jobs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

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
        self.jobs = sorted(state.jobs if rules.preempts else state.waiting, key=self.place)
        # Needed only by a ranking that changes, and not by one that is gone through once.
        self._noted = not self.jobs
        self._places: list[Place] = []
        self._place_of: dict[str, Place] = {}

    def __iter__(self) -> Iterator[JobInfo]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    def place(self, job: JobInfo, more: float = 0.0) -> Place:
        """Where the job belongs: the smaller one goes first.

        more: added to the first figure of its rank.
        """
        key = self._key
        rank = key(job)
        if more:
            rank = (rank[0] + more, *rank[1:])
        if job.holds and self._hysteresis:
            rank = (rank[0] / (1 + self._hysteresis), *rank[1:])
        return -job.priority, rank, job.holds is None, job.submitted_at, job.id

    def level(self, job: JobInfo) -> tuple[float, Rank]:
        """A key that is equal for jobs between which the policy sees no difference."""
        return self.place(job)[:2]

    def add(self, job: JobInfo) -> Place:
        """Put a job where it belongs, and nowhere else; say where that is."""
        if not self._noted:
            self._note()
        if job.id in self._place_of:
            self.remove(job.id)
        place = self._place_of[job.id] = self.place(job)
        at = bisect_left(self._places, place)
        self._places.insert(at, place)
        self.jobs.insert(at, job)
        return place

    def remove(self, job_id: str) -> bool:
        """Take a job out if it is there, and say whether it was."""
        if not self._noted:
            self._note()
        place = self._place_of.pop(job_id, None)
        if place is None:
            return False
        at = bisect_left(self._places, place)
        del self._places[at], self.jobs[at]
        return True

    def _note(self) -> None:
        """Note the places of all jobs."""
        self._noted = True
        self._places = [self.place(job) for job in self.jobs]
        self._place_of = {place[-1]: place for place in self._places}
