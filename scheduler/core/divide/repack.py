"""Actions from a wish for each job, for policies that divide a whole cluster.

A wish is an option, or nothing. Running jobs that keep their option keep their GPUs; the others
are placed (`places`), class by class where not all find a place (`classes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from knowledge.core.domain.types import Option
from scheduler.core.cycle import wait_reasons
from scheduler.core.divide.bundles import ANY, bundle, movable, possible_options
from scheduler.core.divide.capacity import Capacity
from scheduler.core.divide.classes import is_fair, serve_by_class
from scheduler.core.divide.places import Places, Wishes, is_met, left_over, serve, spare
from scheduler.core.divide.rules import DivideRules
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.stopping import SHARED, StopReason
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

# (jobs, their options, GPUs) -> the option that each job should have; a missing job should have none.
Choose = Callable[[Sequence[JobInfo], Sequence[Sequence[Option]], Capacity], list[tuple[JobInfo, Option]]]


def divide(
    state: ClusterState, now: float, choose: Choose, placement: Placement, rules: DivideRules = ANY
) -> Plan:
    """Divide the GPUs among all jobs: what a priority leaves, the next one divides.

    The plan keeps who was to have which bundle, by priority.
    """
    jobs = movable(state.jobs, state.nodes, rules, now)
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
    or a lower class has what a job without a wish could use, the classes are also placed one after the other,
    which is taken if it serves a higher one better. Nobody is stopped, or waits, beside idle GPUs: what is
    left goes to jobs without a place, running ones first.
    """
    places = serve(state, jobs, jobs, wishes, {}, placement)
    if len({job.priority for job in jobs}) > 1:
        all_met = all(is_met(wish, places.get(job)) for job, wish in wishes.items())
        if not all_met or not is_fair(state, jobs, jobs, places, placement):
            places = serve_by_class(state, jobs, wishes, places, placement)
    left_out = [job for job in jobs if job.id not in places]
    if left_out and not (free := left_over(state, jobs, places, placement)).used_up:
        left_out.sort(key=lambda job: (-job.priority, job.holds is None, job.submitted_at, job.id))
        places |= spare(left_out, places, free)
    return _actions(state, jobs, places)


def _actions(state: ClusterState, jobs: Sequence[JobInfo], places: Places) -> tuple[Action, ...]:
    stopped: list[Action] = []
    granted: list[Action] = []
    concerned = [job for job in jobs if job.holds or job.id in places]
    for job in sorted(concerned, key=lambda job: (job.submitted_at, job.id)):
        option, gpus = places.get(job.id, (None, ()))
        if job.holds is None and option:
            granted.append(Start(job.id, option, gpus))
        elif job.holds and option is None:
            stopped.append(Preempt(job.id, StopReason.DIVISION))
        elif job.holds and option and not _stays(job.holds, option, gpus):
            granted.append(Resize(job.id, option, gpus))
    waits = _waits(state, set(places), FreeGpus(state.nodes)) if state.explain else []
    return (*stopped, *granted, *waits)


def _stays(holds: Holding, option: Option, gpus: Iterable[GpuId]) -> bool:
    return bundle(option) == bundle(holds.option) and set(gpus) == set(holds.gpus)


def _waits(state: ClusterState, placed: set[str], free: FreeGpus) -> list[Wait]:
    """Those that stay waiting, higher classes first.

    It is the order of the queue, and in which borrowed GPUs return.
    """
    waits = []
    for job in sorted(state.jobs, key=lambda job: (-job.priority, job.submitted_at, job.id)):
        if job.holds or job.id in placed:
            continue
        options = [] if job.hold else possible_options(job, free)
        if not options:
            waits.append(wait_reasons.nowhere(job))
        else:
            waits.append(wait_reasons.busy(job, options[0], free, behind=SHARED))
    return waits
