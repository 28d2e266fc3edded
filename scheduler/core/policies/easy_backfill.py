"""EASY backfill: later jobs may use what the first waiting job cannot.

The order is otherwise first in, first out within a priority. The first job that does not fit
gets a reservation: the earliest time at which it would fit by the predicted ends of the running
jobs, and its GPUs then. A later job may start if it is predicted to end by that time, or on GPUs outside the
reservation. The reservation is kept until its time has come, even if it could be improved.
Source: Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS
2001.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import itemgetter
from typing import Any, ClassVar

from knowledge.core.domain.types import Option
from scheduler.core.cycle import wait_reasons
from scheduler.core.cycle.cycle import acceptable
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.remaining_work import remaining_s
from scheduler.core.types import (
    ClusterState,
    Description,
    GpuId,
    JobInfo,
    Plan,
    Start,
    Topology,
    Wait,
)

_End = tuple[float, tuple[GpuId, ...], Option]  # (time, released GPUs, option)


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


@dataclass(frozen=True, slots=True)
class Easy:
    name: str = "easy"
    description: ClassVar[Description] = Description(
        summary="First come, first served; later jobs fill gaps where no delay is predicted.",
        order="submission; later jobs fill gaps that do not delay the first waiting one",
        needs="durations, running jobs",
        source="Lifka 1995",
    )
    rules: CycleOptions = field(default_factory=CycleOptions)
    preempts: bool = False
    round_s: float | None = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs in the order of their arrival, larger priorities first.

        The gaps before the first one that waits are filled afterwards.
        """
        waiting = sorted(state.waiting, key=lambda job: (-job.priority, job.submitted_at, job.id))
        if not waiting:
            return Plan(())
        walk = _Walk(state, now, self.rules)
        for number, job in enumerate(waiting):
            if walk.start_or_explain(job, walk.free):
                continue
            walk.reserve(job)
            walk.backfill(waiting[number + 1 :])
            break
        return Plan((*walk.started, *walk.waits), walk.memory)


class _Walk:
    """One decision; `spare` is what is free outside the reservation."""

    def __init__(self, state: ClusterState, now: float, rules: CycleOptions) -> None:
        self.state, self.now, self.rules = state, now, rules
        self.free = FreeGpus(state.nodes, rules.placement)
        self.spare = self.free
        self.promise: Reservation | None = None
        self.blocked: set[str] = set()  # GPU models the head waits for, when nobody knows how long
        self.memory: Mapping[str, Any] = {}
        self.started: list[Start] = []
        self.waits: list[Wait] = []

    def start_or_explain(self, job: JobInfo, free: FreeGpus) -> bool:
        """True unless the job could run on this cluster and finds no place now."""
        options = acceptable(job, self.free, self.rules)
        if job.hold or not options:
            self._wait(wait_reasons.nowhere(job))
            return True
        return any(self._start(job, option, free) for option in options)

    def reserve(self, head: JobInfo) -> None:
        """Promise the head the earliest place that the running jobs' predicted ends allow."""
        options = acceptable(head, self.free, self.rules)
        known = _remembered(self.state.memory)
        if known and known.job == head.id and known.at is not None and self.now < known.at:
            self.promise = known if self._stands(known) else None
        self.promise = self.promise or self._earliest(head, options)
        self.memory = self.promise.as_memory()
        kept_off = self.state.kept_off(head) or head.topology is Topology.GUARANTEED
        if self.promise.at is None and not kept_off:
            self.blocked = {option.gpu_model for option in options}
        self.spare = self.free.copy()
        self.spare.withhold(self.promise.gpus)
        self._explain(head, options[0], "")

    def backfill(self, jobs: Iterable[JobInfo]) -> None:
        """Start the jobs that do not delay the head."""
        for job in jobs:
            if not self.state.explain and not self.free.count():
                break
            options = acceptable(job, self.free, self.rules)
            if job.hold or not options:
                self.start_or_explain(job, self.free)
            elif not any(self._fill(job, option) for option in options):
                self._explain(job, options[0], "It would delay a job that goes before it.")

    def _fill(self, job: JobInfo, option: Option) -> bool:
        if option.gpu_model in self.blocked or self.promise is None:
            return False
        at = self.promise.at
        ends_in_time = at is not None and self.now + remaining_s(job, option) <= at
        return self._start(job, option, self.free if ends_in_time else self.spare)

    def _start(self, job: JobInfo, option: Option, free: FreeGpus) -> bool:
        gpus = free.place(option, job)
        if not gpus:
            return False
        self.free.take(option, gpus)
        if self.spare is not self.free:
            self.spare.take(option, gpus)
        self.started.append(Start(job.id, option, gpus))
        return True

    def _stands(self, promise: Reservation) -> bool:
        ready = {node.id for node in self.state.nodes if node.ready}
        return all(node in ready for node, _ in promise.gpus)

    def _earliest(self, head: JobInfo, options: Sequence[Option]) -> Reservation:
        ends = self._ends()
        found = [(self._when(head, option, ends), option) for option in options]
        known = [(place[0] + remaining_s(head, option), place) for place, option in found if place]
        if not known:
            return Reservation(head.id, None, frozenset())
        _, (at, gpus) = min(known, key=lambda end: end[0])
        return Reservation(head.id, at, frozenset(gpus))

    def _when(
        self, head: JobInfo, option: Option, ends: Iterable[_End]
    ) -> tuple[float, tuple[GpuId, ...]] | None:
        later = self.free.copy()
        for at, released, held in ends:
            if held.gpu_model == option.gpu_model:
                later.give(held, released)
                if gpus := later.place(option, head):
                    return at, gpus
        return None

    def _ends(self) -> list[_End]:
        """Return the predicted ends of running jobs, with the GPUs that they release.

        Jobs started just now are included.
        """
        ends: list[_End] = [(self.now + in_s, gpus, option) for in_s, gpus, option in self.state.releases]
        waiting = {job.id: job for job in self.state.waiting} if self.started else {}
        for start in self.started:
            ends.append((self.now + remaining_s(waiting[start.job], start.option), start.gpus, start.option))
        return sorted((end for end in ends if isfinite(end[0])), key=itemgetter(0, 1))

    def _explain(self, job: JobInfo, option: Option, behind: str) -> None:
        if self.state.explain:
            self._wait(wait_reasons.busy(job, option, self.free, behind=behind))

    def _wait(self, wait: Wait) -> None:
        if self.state.explain:
            self.waits.append(wait)


def _remembered(memory: Mapping[str, Any]) -> Reservation | None:
    if "gpus" not in memory:
        return None
    return Reservation(
        memory["job"], memory["at"], frozenset((node, index) for node, index in memory["gpus"])
    )


EASY = Easy()
