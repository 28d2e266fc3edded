"""Backfill with a reservation.

Later jobs may use what the first waiting job cannot.

The first job of an order that does not fit gets a reservation: the earliest time at which it would fit by the
predicted ends of the running jobs, and GPUs for it then, of which as few as possible are free now. A later
job may start if it is predicted to end by that time, or on GPUs outside the reservation. The time is kept
until it has come, even if it could be improved; the GPUs may become others that are there by then.
Source: Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 2001, for the
order of arrival; any order that stops nobody may be filled in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop
from math import inf
from typing import Any

from knowledge.core.domain.types import Option
from scheduler.core.cycle import wait_reasons
from scheduler.core.cycle.cycle import AHEAD, BEFORE, Cycle, acceptable
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranking import Rank, Ranking
from scheduler.core.placement.fit import FreeGpus, Request, request_of
from scheduler.core.remaining_work import remaining_s
from scheduler.core.types import (
    Action,
    ClusterState,
    GpuId,
    JobInfo,
    NodeInfo,
    Start,
    Topology,
    Wait,
)

# (time, released GPUs, option); ordered by these, as no two running jobs hold the same GPUs
End = tuple[float, tuple[GpuId, ...], Option]
RESERVATION = "reservation"  # its key in the memory of a policy
DELAYS = "It would delay a job that goes before it."
LATER = "It starts when enough are free and no job that goes before it is delayed."


@dataclass(frozen=True, slots=True)
class Reservation:
    """The reservation of the first waiting job.

    `at` None: no running job's end is known to make it fit.
    """

    job: str
    at: float | None
    gpus: frozenset[GpuId]

    def as_memory(self) -> dict[str, Any]:
        return {"job": self.job, "at": self.at, "gpus": sorted(map(list, self.gpus))}


def remembered(promise: Reservation | None) -> dict[str, Any]:
    """What the memory of a policy says of a reservation."""
    return {RESERVATION: promise.as_memory()} if promise else {}


def decide_in_order(
    order: Iterable[JobInfo], state: ClusterState, now: float, rules: CycleOptions, behind: str = BEFORE
) -> tuple[tuple[Action, ...], dict[str, Any]]:
    """One decision about the jobs in this order, with what its reservation leaves."""
    if rules.blocks is not HeadOfLine.RESERVATION:
        return Cycle(state, now, rules, behind).run(order), {}
    queue = ReservingQueue(rules, state, behind=behind)
    return queue.decide_about(order, now), remembered(queue.promise)


class ReservingQueue:
    """The waiting jobs, the free GPUs and the reservation.

    A live tick makes one of its snapshot and asks it once. The simulator keeps one and says what changes, as
    it does for other policies that rank (`scheduler.core.cycle.ranked`).
    key: of the ranking that `decide` follows.
    ends: of running jobs, as predicted at a time, with the GPUs that they release; None: those of the state.
    behind: who goes first, as of `Cycle`.
    """

    def __init__(
        self,
        rules: CycleOptions,
        state: ClusterState,
        key: Callable[[JobInfo], Rank] | None = None,
        ends: Callable[[float], list[End]] | None = None,
        behind: str = BEFORE,
    ) -> None:
        self.rules, self.state = rules, state
        self.until = wait_reasons.HELD if behind == AHEAD else wait_reasons.OUTRANKED
        self.ends = ends or (
            lambda now: [(now + in_s, gpus, option) for in_s, gpus, option in state.releases]
        )
        self._key = key
        self.ready = _ready(state.nodes)
        self.promise = _remembered(state.memory)
        self._acceptable: dict[str, Sequence[Option]] = {}

    @cached_property
    def ranking(self) -> Ranking:
        return Ranking(self.state, self._key or (lambda job: (job.submitted_at,)), self.rules)

    @cached_property
    def free(self) -> FreeGpus:
        """Made when it is needed: a queue in which nobody waits decides nothing."""
        return FreeGpus(self.state.nodes, self.rules.placement)

    def add(self, job: JobInfo) -> None:
        """A job waits from now on, or waits with other options."""
        self.ranking.add(job)
        self._acceptable.pop(job.id, None)

    def remove(self, job_id: str) -> None:
        """A job has started, with GPUs that the decision took, or has ended."""
        self.ranking.remove(job_id)
        self._acceptable.pop(job_id, None)

    def release(self, option: Option, gpus: tuple[GpuId, ...]) -> None:
        """GPUs that were held with this option are free again."""
        self.free.give(option, gpus)

    def change_nodes(self, nodes: tuple[NodeInfo, ...]) -> None:
        """These are the nodes now."""
        self.state = replace(self.state, nodes=nodes)
        self.ready, self.free = _ready(nodes), FreeGpus(nodes, self.rules.placement)
        self._acceptable.clear()

    def acceptable(self, job: JobInfo) -> Sequence[Option]:
        """The options that the job would take; they stay the same while the nodes do."""
        known = self._acceptable.get(job.id)
        if known is None:
            known = self._acceptable[job.id] = acceptable(job, self.free, self.rules)
        return known

    def decide(self, now: float) -> tuple[Action, ...]:
        """Start jobs by their ranks, and keep the reservation of the first one that waits."""
        if not self.ranking.jobs:
            self.promise = None
            return ()
        return self.decide_about(self.ranking, now)

    def decide_about(self, order: Iterable[JobInfo], now: float) -> tuple[Action, ...]:
        """The same in this order."""
        walk = _Walk(self, now)
        self.promise = walk.run(iter(order))
        return (*(start for _, start in walk.started), *walk.waits)


class _Walk:
    """One decision."""

    def __init__(self, queue: ReservingQueue, now: float) -> None:
        self.queue, self.state, self.free, self.now = queue, queue.state, queue.free, now
        self.promise: Reservation | None = None
        self.blocked: set[str] = set()  # GPU models the head waits for, when nobody knows how long
        self.started: list[tuple[JobInfo, Start]] = []
        self.waits: list[Wait] = []
        self._head: JobInfo | None = None
        self._spare: FreeGpus | None = None
        self._later: FreeGpus | None = None
        self._refused: set[Request] = set()  # would delay the head, as far as is known

    def run(self, jobs: Iterator[JobInfo]) -> Reservation | None:
        """Start what fits; return the reservation of the first job that does not."""
        for job in jobs:
            if not self._start_or_explain(job):
                self._reserve(job)
                self._backfill(jobs)
                break
        return self.promise

    @property
    def spare(self) -> FreeGpus:
        """GPUs free outside the reservation; few decisions need it."""
        if self._spare is None:
            self._spare = self.free.copy()
            self._spare.withhold(self.promise.gpus if self.promise else ())
        return self._spare

    def _start_or_explain(self, job: JobInfo) -> bool:
        """True unless the job could run on this cluster and finds no place now."""
        options = self.queue.acceptable(job)
        if job.hold or not options:
            self._wait(wait_reasons.nowhere(job))
            return True
        return any(self._start(job, option, self.free) for option in options)

    def _reserve(self, head: JobInfo) -> None:
        """Promise the head the earliest place that the running jobs' predicted ends allow."""
        options, known = self.queue.acceptable(head), self.queue.promise
        self._head = head
        if known and known.job == head.id and known.at is not None and self.now < known.at:
            stands = all(node in self.queue.ready for node, _ in known.gpus)
            self.promise = known if stands else None
        self.promise = self.promise or self._earliest(head, options)
        kept_off = self.state.kept_off(head) or head.topology is Topology.GUARANTEED
        if self.promise.at is None and not kept_off:
            self.blocked = {option.gpu_model for option in options}
        passed = self.promise.at is None and kept_off
        self._explain(head, options[0], until=wait_reasons.PASSED if passed else self.queue.until)

    def _backfill(self, jobs: Iterable[JobInfo]) -> None:
        """Start the jobs that do not delay the head."""
        for job in jobs:
            if not self.state.explain and not self.free.count():
                break
            options = self.queue.acceptable(job)
            if job.hold or not options:
                self._start_or_explain(job)
            elif not any(self._fill(job, option) for option in options) and self.state.explain:
                fits = any(self.free.place(option, job) for option in options)
                self._explain(job, options[0], DELAYS if fits else "", LATER)

    def _fill(self, job: JobInfo, option: Option) -> bool:
        if option.gpu_model in self.blocked or self.free.count(option.gpu_model) < option.gpus:
            return False
        at = self.promise.at if self.promise else None
        if at is not None and self.now + remaining_s(job, option) <= at:
            if starts := self._start(job, option, self.free):
                self._refused.clear()  # its GPUs may be reserved instead of others
            return starts
        if self._start(job, option, self.spare):
            return True
        if at is None or not (gpus := self.free.place(option, job)):
            return False
        if (request := request_of(option, job)) in self._refused:
            return False
        if self._reserve_others() and self._start(job, option, self.spare):
            return True
        later = self.later(at)
        later.take(option, gpus)
        if self._reserve_others():
            later.give(option, gpus)
            return self._start(job, option, self.spare)
        later.give(option, gpus)
        self._refused.add(request)
        return False

    def later(self, at: float) -> FreeGpus:
        """The GPUs that will be free when the reservation begins, as far as is predicted."""
        if self._later is None:
            self._later = self.free.copy()
            for ends_at, released, held in self._all_ends():
                if ends_at <= at:
                    self._later.give(held, released)
        return self._later

    def _reserve_others(self) -> bool:
        """Keep the promise with other GPUs, of which fewer are free now.

        They will be there by the promised time.

        Some have been taken since by jobs that end in time, or are free now while others are not.
        """
        promise, head = self.promise, self._head
        if promise is None or promise.at is None or head is None:
            return False
        nodes = {node for node, _ in promise.gpus}
        for option in self.queue.acceptable(head):
            pool = self.free.pools.get(option.gpu_model)
            alike = option.gpus == len(promise.gpus) and option.nodes == len(nodes)
            if alike and pool and nodes <= pool.nodes.keys():
                gpus = self.later(promise.at).place_sparing(option, head, self.free)
                if gpus:
                    self.promise, self._spare = replace(promise, gpus=frozenset(gpus)), None
                return gpus is not None
        return False

    def _start(self, job: JobInfo, option: Option, free: FreeGpus) -> bool:
        gpus = free.place(option, job)
        if not gpus:
            return False
        self.free.take(option, gpus)
        if self._spare is not None:
            self._spare.take(option, gpus)
        at = self.promise.at if self.promise else None
        if self._later is not None and (at is None or self.now + remaining_s(job, option) > at):
            self._later.take(option, gpus)
        self.started.append((job, Start(job.id, option, gpus)))
        return True

    def _earliest(self, head: JobInfo, options: Sequence[Option]) -> Reservation:
        """The place where the head would end first, as running jobs end one after another."""
        later = self.free.copy()
        found: dict[int, tuple[float, tuple[GpuId, ...]]] = {}
        for at, released, held in self._ends():
            later.give(held, released)
            for number, option in enumerate(options):
                asks = number not in found and held.gpu_model == option.gpu_model
                if asks and (gpus := later.place_sparing(option, head, self.free)):
                    found[number] = at, gpus
            if len(found) == len(options):
                break
        known = [(found[number][0] + remaining_s(head, options[number]), number) for number in found]
        if not known:
            return Reservation(head.id, None, frozenset())
        at, gpus = found[min(known)[1]]
        return Reservation(head.id, at, frozenset(gpus))

    def _ends(self) -> Iterator[End]:
        """Yield the predicted ends, the first one first."""
        ends = self._all_ends()
        heapify(ends)  # few are asked for
        while ends and ends[0][0] < inf:
            yield heappop(ends)

    def _all_ends(self) -> list[End]:
        """The predicted ends of running jobs, those started just now included."""
        ends = self.queue.ends(self.now)
        for job, start in self.started:
            ends.append((self.now + remaining_s(job, start.option), start.gpus, start.option))
        return ends

    def _explain(self, job: JobInfo, option: Option, behind: str = "", until: str = "") -> None:
        if self.state.explain:
            self._wait(wait_reasons.busy(job, option, self.free, behind=behind, until=until))

    def _wait(self, wait: Wait) -> None:
        if self.state.explain:
            self.waits.append(wait)


def _ready(nodes: Iterable[NodeInfo]) -> frozenset[str]:
    return frozenset(node.id for node in nodes if node.ready)


def _remembered(memory: Mapping[str, Any]) -> Reservation | None:
    known = memory.get(RESERVATION)
    if known is None:
        return None
    return Reservation(known["job"], known["at"], frozenset((node, index) for node, index in known["gpus"]))
