"""Priority classes where the nodes have no room for all wishes.

GPUs are counted as wishes are made: a higher class wishes first. Of wishes that are placed together, large
gangs find their places before small ones, of whatever class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from scheduler.core.divide.bundles import possible_options
from scheduler.core.divide.places import Places, Wishes, is_met, left_over, serve
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.types import ClusterState, JobInfo


def serve_by_class(
    state: ClusterState, jobs: Sequence[JobInfo], wishes: Wishes, together: Places, placement: Placement
) -> Places:
    """Places class by class, so that none is left out for a lower one.

    What a higher class leaves, the next one takes, unless it is served better by its places `together` with
    all others, or anew with the higher ones, which then are served no worse.
    """
    places: Places = {}
    higher: list[JobInfo] = []
    for one in sorted({job.priority for job in jobs}, reverse=True):
        peers = [job for job in jobs if job.priority == one]
        so_far = [*higher, *peers]
        kept = {job.id: together[job.id] for job in so_far if job.id in together}
        beside = places | serve(state, jobs, peers, wishes, places, placement)
        anew = serve(state, jobs, so_far, wishes, {}, placement)
        fair = [tried for tried in (kept, anew) if _is_fair(state, jobs, higher, tried, placement)]
        found = [
            tried | _spare(peers, tried, left_over(state, jobs, tried, placement))
            for tried in (*fair, beside)
        ]
        places = max(found, key=lambda tried: (_by_class(so_far, wishes, tried), -_moved(so_far, tried)))
        higher = so_far
    return places


def _is_fair(
    state: ClusterState,
    jobs: Sequence[JobInfo],
    higher: Sequence[JobInfo],
    places: Places,
    placement: Placement,
) -> bool:
    """Does a lower class keep none of these jobs from a place?"""
    for one in {job.priority for job in higher if job.id not in places}:
        taken = {job.id: places[job.id] for job in higher if job.id in places and job.priority >= one}
        free = left_over(state, jobs, taken, placement)
        left_out = [job for job in higher if job.priority == one and job.id not in places]
        if any(free.place(option, job) for job in left_out for option in possible_options(job, free)):
            return False
    return True


def _spare(jobs: Sequence[JobInfo], places: Places, free: FreeGpus) -> Places:
    """The smallest places that fit jobs which have none.

    A lower class has its turn only after them, whether they had a wish or not.
    """
    found: Places = {}
    for job in jobs:
        if job.id in places:
            continue
        fits = ((option, gpus) for option in possible_options(job, free) if (gpus := free.place(option, job)))
        if place := next(fits, None):
            free.take(*place)
            found[job.id] = place
    return found


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
