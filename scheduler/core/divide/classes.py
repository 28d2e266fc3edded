"""Priority classes where the nodes have no room for all wishes.

GPUs are counted as wishes are made: a higher class wishes first. Of wishes that are placed together, large
gangs find their places before small ones, of whatever class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from scheduler.core.divide.places import Places, Wishes, is_met, left_over, serve, smallest, spare
from scheduler.core.placement.fit import Placement
from scheduler.core.types import ClusterState, JobInfo


def is_fair(
    state: ClusterState,
    jobs: Sequence[JobInfo],
    peers: Sequence[JobInfo],
    places: Places,
    placement: Placement,
) -> bool:
    """Does a lower class keep none of these jobs from a place?

    peers: whole classes of all jobs.
    """
    for one in {job.priority for job in peers if job.id not in places}:
        taken = {job.id: places[job.id] for job in peers if job.id in places and job.priority >= one}
        free = left_over(state, jobs, taken, placement)
        left_out = [job for job in peers if job.priority == one and job.id not in places]
        if any(smallest(job, free) for job in left_out):
            return False
    return True


def serve_by_class(
    state: ClusterState, jobs: Sequence[JobInfo], wishes: Wishes, together: Places, placement: Placement
) -> Places:
    """Places class by class, so that none is left out for a lower one.

    Each class takes the GPUs that higher ones leave, unless it is served better by its places `together` with
    all others, or anew with the higher ones, which then are served no worse.
    """
    places: Places = {}
    higher: list[JobInfo] = []
    for one in sorted({job.priority for job in jobs}, reverse=True):
        peers = [job for job in jobs if job.priority == one]
        so_far = [*higher, *peers]
        kept = {job.id: together[job.id] for job in so_far if job.id in together}
        beside = places | serve(state, jobs, peers, wishes, places, placement)
        tried = [kept]
        if not all(is_met(wishes[job.id], beside.get(job.id)) for job in peers if job.id in wishes):
            tried.append(serve(state, jobs, so_far, wishes, {}, placement))
        fair = [places for places in tried if is_fair(state, jobs, higher, places, placement)]
        found = [
            start | spare(peers, start, left_over(state, jobs, start, placement)) for start in (*fair, beside)
        ]
        places = max(found, key=lambda end: (_by_class(so_far, wishes, end), -_moved(so_far, end)))
        higher = so_far
    return places


def _by_class(jobs: Iterable[JobInfo], wishes: Wishes, places: Places) -> list[tuple[float, int, int]]:
    """Each class with the wishes met in it and the jobs that have GPUs.

    The highest comes first, so that such lists compare by what is best for higher classes.
    """
    met: Counter[float] = Counter()
    served: Counter[float] = Counter()
    for job in jobs:
        met[job.priority] += job.id in wishes and is_met(wishes[job.id], places.get(job.id))
        served[job.priority] += job.id in places
    return [(one, met[one], served[one]) for one in sorted(served, reverse=True)]


def _moved(jobs: Iterable[JobInfo], places: Places) -> int:
    """How many of the jobs that run would be stopped, moved or resized."""
    held = {job.id: set(job.holds.gpus) for job in jobs if job.holds}
    return sum(job not in places or set(places[job][1]) != gpus for job, gpus in held.items())
