"""Places for the wishes of jobs: as many as possible, large gangs first.

If a job finds no place among those that stay, small jobs in the way are moved. A job that still finds none
takes the next smaller option on the same GPUs, stays where it was, or waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from knowledge.core.domain.types import Option
from scheduler.core.divide.bundles import bundle, every_option, size
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.types import ClusterState, GpuId, JobInfo

Wishes = Mapping[str, Option]  # by job id; without an entry: no GPUs
Place = tuple[Option, tuple[GpuId, ...]]
Places = dict[str, Place]


def is_met(wish: Option, place: Place | None) -> bool:
    return place is not None and bundle(place[0]) == bundle(wish)


def serve(
    state: ClusterState,
    jobs: Sequence[JobInfo],
    peers: Sequence[JobInfo],
    wishes: Wishes,
    taken: Places,
    placement: Placement,
) -> Places:
    """Places for the peers beside those that are taken by others of the jobs."""
    own = {job.id: wishes[job.id] for job in peers if job.id in wishes}
    free = left_over(state, jobs, taken, placement)
    places = _arrange(state, peers, own, free, stay=True)
    if len(places) < len(own):
        other = left_over(state, jobs, taken, placement)
        repacked = _arrange(state, peers, own, other, stay=False)
        if len(repacked) > len(places):
            places, free = repacked, other
    return places | _degrade([job for job in peers if job.id not in places], own, free)


def _arrange(
    state: ClusterState, jobs: Sequence[JobInfo], wishes: Wishes, free: FreeGpus, *, stay: bool
) -> Places:
    """Find places for as many wishes as possible.

    With `stay`, jobs that keep their option are placed first.
    """
    places: Places = {}
    lacking = {tuning for node in state.nodes if node.ready for tuning in node.cannot_train}
    wanting = [job for job in jobs if job.id in wishes]
    for job in sorted(wanting, key=lambda job: _turn(job, wishes[job.id], lacking, stay=stay)):
        wish = wishes[job.id]
        own = job.holds.gpus if job.holds and bundle(job.holds.option) == bundle(wish) else ()
        gpus = own if own and _are_free(free, wish, own) else free.place(wish, job)
        if gpus:
            free.take(wish, gpus)
            places[job.id] = (wish, gpus)
    return places


def _turn(
    job: JobInfo, wish: Option, lacking: Collection[str], *, stay: bool
) -> tuple[bool, bool, int, int, bool, float, str]:
    """Return the key that sorts jobs into the order of placement.

    Jobs that stay come first, then those that cannot go everywhere, then large gangs.
    Priority classes do not count: `classes` serves them one by one where a wish finds no place.
    """
    keeps = bool(job.holds and bundle(job.holds.option) == bundle(wish))
    anywhere = wish.config.tuning not in lacking and not job.avoids
    return not (stay and keeps), anywhere, -wish.nodes, -wish.gpus, not keeps, job.submitted_at, job.id


def _degrade(jobs: Sequence[JobInfo], wishes: Wishes, free: FreeGpus) -> Places:
    """Give jobs whose wish found no place their old place or something smaller.

    Jobs without a wish that could stay after all follow, class by class.
    """
    places: Places = {}
    able = [] if free.used_up else [job for job in jobs if job.holds or job.id in wishes]
    for job in sorted(able, key=lambda job: (-job.priority, job.id not in wishes, job.submitted_at, job.id)):
        wish = wishes.get(job.id)
        found = _old_place(job, free) or (_smaller(job, wish, free) if wish else None)
        if found:
            free.take(*found)
            places[job.id] = found
    return places


def _old_place(job: JobInfo, free: FreeGpus) -> Place | None:
    if job.holds and _are_free(free, job.holds.option, job.holds.gpus):
        return job.holds.option, job.holds.gpus
    return None


def _smaller(job: JobInfo, wish: Option, free: FreeGpus) -> Place | None:
    for option in sorted(every_option(job, free), key=size, reverse=True):
        fits = option.gpu_model == wish.gpu_model and option.gpus <= wish.gpus
        if fits and (gpus := free.place(option, job)):
            return option, gpus
    return None


def spare(jobs: Sequence[JobInfo], places: Places, free: FreeGpus) -> Places:
    """The smallest places that fit jobs which have none.

    A lower class has its turn only after them, whether they had a wish or not.
    """
    found: Places = {}
    for job in jobs:
        if free.used_up:
            break
        if job.id in places:
            continue
        if place := smallest(job, free):
            free.take(*place)
            found[job.id] = place
    return found


def smallest(job: JobInfo, free: FreeGpus) -> Place | None:
    """The smallest bundle of the job that fits, with its GPUs.

    Of options with the same bundle one may fit on nodes where another does not.
    """
    if not any(option.gpus <= free.count(option.gpu_model) for option in job.options):
        return None  # quickly: on a full cluster most jobs have none
    fits = ((option, gpus) for option in every_option(job, free) if (gpus := free.place(option, job)))
    return next(fits, None)


def left_over(state: ClusterState, jobs: Iterable[JobInfo], taken: Places, placement: Placement) -> FreeGpus:
    """The GPUs that are free if none of these jobs held any but what is taken."""
    free = FreeGpus(state.nodes, placement)
    for job in jobs:
        if job.holds:
            free.give(job.holds.option, job.holds.gpus)
    for option, gpus in taken.values():
        free.take(option, gpus)
    return free


def _are_free(free: FreeGpus, option: Option, gpus: Iterable[GpuId]) -> bool:
    pool = free.pools.get(option.gpu_model)
    return pool is not None and all(pool.free.get(node, 0) >> index & 1 for node, index in gpus)
