"""Actions from a wish for each job, for policies that divide a whole cluster.

A wish is an option, or nothing. Running jobs that keep their option keep their GPUs. The others
are placed, large gangs first. If a job finds no place among those that stay, small jobs in the
way are moved. A job that still finds none takes the next smaller option on the same GPUs, stays
where it was, or waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from knowledge.core.domain.types import Option
from scheduler.core.cycle import wait_reasons
from scheduler.core.divide.bundles import ANY, bundle, movable, possible_options
from scheduler.core.divide.capacity import Capacity
from scheduler.core.divide.rules import DivideRules
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.types import (
    Action,
    ClusterState,
    GpuId,
    Holding,
    JobInfo,
    Plan,
    Preempt,
    Resize,
    Start,
    Wait,
)

Wishes = Mapping[str, Option]  # by job id; without an entry: no GPUs
Places = dict[str, tuple[Option, tuple[GpuId, ...]]]
# (jobs, their options, GPUs) -> the option that each job should have; a missing job should have none.
Choose = Callable[[Sequence[JobInfo], Sequence[Sequence[Option]], Capacity], list[tuple[JobInfo, Option]]]
SHARED = "Its GPUs go to other jobs in this round."


def divide(
    state: ClusterState, now: float, choose: Choose, placement: Placement, rules: DivideRules = ANY
) -> Plan:
    """Divide the GPUs among all jobs: what a priority leaves, the next one divides.

    The plan keeps who was to have which bundle, by priority.
    """
    jobs = movable(state, rules, now)
    free = FreeGpus(state.nodes, placement)
    left = Capacity.of(state, jobs)
    wishes: dict[str, Option] = {}
    solved: dict[str, Any] = {}
    for priority in sorted({job.priority for job in jobs}, reverse=True):
        peers = [job for job in jobs if job.priority == priority]
        options = [possible_options(job, free, rules) for job in peers]
        name = f"{priority:.17g}"  # the same for 1 and 1.0, as kept decisions hold both
        known = state.solved.get(name)
        chosen = choose(peers, options, left) if known is None else _chosen(known, peers, options)
        solved[name] = [[job.id, *bundle(option)] for job, option in chosen]
        for job, option in chosen:
            wishes[job.id] = option
            left.take(option)
    return Plan(realize(state, jobs, wishes, placement), state.memory, solved)


def _chosen(
    known: Sequence[Sequence[Any]], jobs: Sequence[JobInfo], options: Sequence[Sequence[Option]]
) -> list[tuple[JobInfo, Option]]:
    """The jobs with the options of the bundles that were chosen before, in that order."""
    places = {
        (job.id, *bundle(option)): (job, option)
        for job, found in zip(jobs, options, strict=True)
        for option in found
    }
    return [places[job, model, nodes, gpus] for job, model, nodes, gpus in known]


def realize(
    state: ClusterState, jobs: Sequence[JobInfo], wishes: Wishes, placement: Placement = Placement.BEST_FIT
) -> tuple[Action, ...]:
    """The actions that bring the jobs as close to their wishes as their nodes allow.

    All classes are placed together, so that most wishes fit and few jobs move. Where a wish finds no place,
    the classes are also placed one after the other, which is taken if it serves a higher one better.
    """
    places = _serve(state, jobs, jobs, wishes, {}, placement)
    if not all(_is_met(wish, places.get(job)) for job, wish in wishes.items()):
        apart = _serve_by_class(state, jobs, wishes, placement)
        places = max(places, apart, key=lambda found: _by_class(jobs, wishes, found))
    return _actions(state, jobs, places)


def _serve_by_class(
    state: ClusterState, jobs: Sequence[JobInfo], wishes: Wishes, placement: Placement
) -> Places:
    """Places class by class: what a higher one leaves, the next one takes.

    A higher class is placed anew, together with the next one, where that serves the next one better and
    itself no worse: it may have taken a node on which a larger gang depends.
    """
    classes = sorted({job.priority for job in jobs}, reverse=True)
    places: Places = {}
    for one in classes if len(classes) > 1 else ():
        so_far = [job for job in jobs if job.priority >= one]
        peers = [job for job in so_far if job.priority == one]
        beside = places | _serve(state, jobs, peers, wishes, places, placement)
        anew = _serve(state, jobs, so_far, wishes, {}, placement)
        places = max(beside, anew, key=lambda found: _by_class(so_far, wishes, found))
        places |= _spare(so_far, places, _left(state, jobs, places, placement))
    return places


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
        met[job.priority] += job.id in wishes and _is_met(wishes[job.id], places.get(job.id))
        served[job.priority] += job.id in places
    return [(one, met[one], served[one]) for one in sorted(served, reverse=True)]


def _is_met(wish: Option, place: tuple[Option, tuple[GpuId, ...]] | None) -> bool:
    return place is not None and bundle(place[0]) == bundle(wish)


def _serve(
    state: ClusterState,
    jobs: Sequence[JobInfo],
    peers: Sequence[JobInfo],
    wishes: Wishes,
    taken: Places,
    placement: Placement,
) -> Places:
    """Places for the peers beside those that are taken by others of the jobs."""
    own = {job.id: wishes[job.id] for job in peers if job.id in wishes}
    places = _arrange(state, peers, own, _left(state, jobs, taken, placement), stay=True)
    if len(places) < len(own):
        repacked = _arrange(state, peers, own, _left(state, jobs, taken, placement), stay=False)
        places = max(places, repacked, key=len)
    return _degrade(peers, own, places, _left(state, jobs, taken | places, placement))


def _arrange(
    state: ClusterState, jobs: Sequence[JobInfo], wishes: Wishes, free: FreeGpus, *, stay: bool
) -> Places:
    """Find places for as many wishes as possible.

    With `stay`, jobs that keep their option are placed first.
    """
    places: Places = {}
    lacking = {method for node in state.nodes if node.ready for method in node.cannot_train}
    for job in sorted(jobs, key=lambda job: _turn(job, wishes, lacking, stay=stay)):
        wish = wishes.get(job.id)
        if wish is None:
            continue
        own = job.holds.gpus if job.holds and bundle(job.holds.option) == bundle(wish) else ()
        gpus = own if own and _are_free(free, wish, own) else free.place(wish, job)
        if gpus:
            free.take(wish, gpus)
            places[job.id] = (wish, gpus)
    return places


def _turn(
    job: JobInfo, wishes: Wishes, lacking: Collection[str], *, stay: bool
) -> tuple[bool, bool, int, int, bool, float, str]:
    """Return the key that sorts jobs into the order of placement.

    Jobs that stay come first, then those that cannot go everywhere, then large gangs.
    Priority classes do not count: `realize` serves them one by one where a wish finds no place.
    """
    wish = wishes.get(job.id)
    keeps = bool(wish and job.holds and bundle(job.holds.option) == bundle(wish))
    size = (wish.nodes, wish.gpus) if wish else (0, 0)
    anywhere = wish is None or (wish.config.method not in lacking and not job.avoids)
    return not (stay and keeps), anywhere, -size[0], -size[1], not keeps, job.submitted_at, job.id


def _degrade(jobs: Sequence[JobInfo], wishes: Wishes, places: Places, free: FreeGpus) -> Places:
    """Give jobs whose wish found no place their old place or something smaller.

    Jobs without a wish that could stay after all follow, class by class.
    """
    for job in sorted(jobs, key=lambda job: (-job.priority, job.id not in wishes, job.submitted_at, job.id)):
        if job.id in places:
            continue
        wish = wishes.get(job.id)
        found = _old_place(job, free) or (_smaller(job, wish, free) if wish else None)
        if found:
            free.take(*found)
            places[job.id] = found
    return places


def _old_place(job: JobInfo, free: FreeGpus) -> tuple[Option, tuple[GpuId, ...]] | None:
    if job.holds and _are_free(free, job.holds.option, job.holds.gpus):
        return job.holds.option, job.holds.gpus
    return None


def _smaller(job: JobInfo, wish: Option, free: FreeGpus) -> tuple[Option, tuple[GpuId, ...]] | None:
    for option in reversed(possible_options(job, free)):
        fits = option.gpu_model == wish.gpu_model and option.gpus <= wish.gpus
        if fits and (gpus := free.place(option, job)):
            return option, gpus
    return None


def _left(state: ClusterState, jobs: Iterable[JobInfo], taken: Places, placement: Placement) -> FreeGpus:
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
    return pool is not None and all(index in pool.free.get(node, ()) for node, index in gpus)


def _actions(state: ClusterState, jobs: Sequence[JobInfo], places: Places) -> tuple[Action, ...]:
    free = FreeGpus(state.nodes)
    stopped: list[Action] = []
    granted: list[Action] = []
    for job in sorted(jobs, key=lambda job: (job.submitted_at, job.id)):
        option, gpus = places.get(job.id, (None, ()))
        if job.holds is None and option:
            granted.append(Start(job.id, option, gpus))
        elif job.holds and option is None:
            stopped.append(Preempt(job.id, f"{SHARED} This job continues from its checkpoint."))
        elif job.holds and option and not _stays(job.holds, option, gpus):
            granted.append(Resize(job.id, option, gpus))
    waits = _waits(state, set(places), free) if state.explain else []
    return (*stopped, *granted, *waits)


def _stays(holds: Holding, option: Option, gpus: Iterable[GpuId]) -> bool:
    return bundle(option) == bundle(holds.option) and set(gpus) == set(holds.gpus)


def _waits(state: ClusterState, placed: set[str], free: FreeGpus) -> list[Wait]:
    waits = []
    for job in sorted(state.jobs, key=lambda job: (job.submitted_at, job.id)):
        if job.holds or job.id in placed:
            continue
        options = [] if job.hold else possible_options(job, free)
        if not options:
            waits.append(wait_reasons.nowhere(job))
        else:
            waits.append(wait_reasons.busy(job, options[0], free, behind=SHARED))
    return waits
