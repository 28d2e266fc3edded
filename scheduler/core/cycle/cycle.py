"""One decision of a ranking policy.

It consists of admission, gang placement, backfill and preemption.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from knowledge.core.domain.cost import balanced
from knowledge.core.domain.types import Goal, Option, all_priced
from scheduler.core.cycle import wait_reasons
from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.ranking import Ranking
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.placement.preemption import Evictions
from scheduler.core.stopping import outranked
from scheduler.core.types import (
    Action,
    ClusterState,
    GpuId,
    Holding,
    JobInfo,
    Preempt,
    Resize,
    Start,
    Topology,
    Wait,
)

_NONE: frozenset[str] = frozenset()
# Python 3.11 takes as long to find a member of an Enum as for a call; each job that waits asks for several.
_ALL, _MODELS, _NOTHING = HeadOfLine.ALL, HeadOfLine.MODELS, HeadOfLine.NOTHING
_GUARANTEED = Topology.GUARANTEED
_BALANCED = Goal.BALANCED
AHEAD = "Jobs that were submitted earlier go first."
AHEAD_BY_CLASS = "Jobs of a higher class or moved to the front go first, then those submitted earlier."
BEFORE = "Jobs that rank before it go first."


class _Passed(NamedTuple):
    """A job that found no place when its turn came.

    It is of a ranking in which others may still be stopped.

    options: those that it would take; of one that was stopped, what it ran with. behind: who goes first.
    """

    job: JobInfo
    options: Sequence[Option]
    behind: str = ""


class Cycle:
    """A walk down the ranking; what it gives away is gone for those further down.

    What those that are stopped leave over is offered once more to all that were passed, best ranked first.

    free, accepted: if they are kept from one decision to the next, what earlier ones left of the state's
    nodes, and the options that all jobs of the order would take.
    """

    __slots__ = (
        "_highest", "_turns", "accepted", "behind", "closed", "coming", "evicted", "evictions", "free",
        "last", "moved", "now", "rules", "started", "state", "taken", "waits", "withheld",
    )  # fmt: skip

    def __init__(
        self,
        state: ClusterState,
        now: float,
        rules: CycleOptions,
        behind: str = BEFORE,
        free: FreeGpus | None = None,
        accepted: AcceptedOptions | None = None,
    ) -> None:
        self.state, self.now, self.rules, self.behind = state, now, rules, behind
        self.free = FreeGpus(state.nodes, rules.placement) if free is None else free
        self.accepted = accepted
        self.evictions: Evictions | None = None
        self.taken = _NONE  # GPU models that a job further ahead waits for
        self.withheld = _NONE  # nodes that one waits for which others do not suit
        self.closed = False  # nobody may pass any more
        self.last: JobInfo | None = None  # nobody behind it could start, so that the walk ended there
        self.evicted: dict[str, Preempt] = {}
        self.coming = 0  # evicted jobs that the walk has not reached yet
        self.moved: list[Resize] = []
        self.started: list[Start] = []
        self.waits: list[Wait] = []
        self._turns: list[Wait | _Passed] = []  # how the turns of those ended that got no GPUs
        self._highest: float | None = None  # class of a waiting job; found when it is needed

    def run(self, order: Iterable[JobInfo]) -> tuple[Action, ...]:
        """Decide for every job of the order.

        The first ones are enough if nobody asks why the others wait.
        """
        if self.rules.preempts and isinstance(order, Ranking):
            evictable = [job for job in order if job.holds and self.rules.evictable(job, self.now)]
            self.evictions = Evictions(self.free, evictable, order.level)
        for job in order:
            if job.holds is None:
                self._decide(job)
            elif job.id in self.evicted:
                self.coming -= 1
                self._move(job, job.holds)
            elif self.evictions is not None:
                self.evictions.keep(job)
            if not self.state.explain and self._is_over():
                self.last = job
                break
        if self._turns:
            self._offer_again()
        if self.state.explain and self._turns:
            waiting = (turn for turn in self._turns if isinstance(turn, Wait) or turn.job.holds is None)
            self.waits = [turn if isinstance(turn, Wait) else self._told(turn) for turn in waiting]
        return (*self.evicted.values(), *self.moved, *self.started, *self.waits)

    def _offer_again(self) -> None:
        """Offer what is free to those that were passed, when nobody is stopped any more."""
        if not self.evicted or self.free.used_up:
            return
        self.evictions, self.closed, self.taken, self.withheld = None, False, _NONE, _NONE
        again, self._turns = self._turns, []
        for number, turn in enumerate(again):
            if self.free.used_up:
                self._turns += again[number:]
                break
            if isinstance(turn, Wait):
                self._turns.append(turn)
            elif turn.job.holds is not None:
                self._move(turn.job, turn.job.holds)
            elif not self._start(turn.job, turn.options):
                self._turns.append(turn)
                self._withhold_for(turn.job, turn.options)

    def _is_over(self) -> bool:
        """Can nothing further down start any more?"""
        wanted = self.accepted.jobs_of if self.accepted else self.free.pools
        if self.closed or not wanted or (self.taken and self.taken >= wanted.keys()):
            return True
        if self.evictions is not None and self.evictions.rank:
            return False
        if self.accepted is None or self.accepted.least is None or self.coming:
            return self.free.used_up
        return all(self.free.count(model) < gpus for model, gpus in self.accepted.least.items())

    @property
    def left(self) -> frozenset[str]:
        """The GPU models on which one more job behind all others might start."""
        pools = () if self.closed or self.free.used_up else self.free.pools
        return frozenset(pools) - self.taken

    def _decide(self, job: JobInfo) -> None:
        options = self.accepted.options.get(job.id) if self.accepted else None
        if options is None:
            only = len(job.options) == 1 and not job.hold
            if only and self.evictions is not None:
                only = not self.evictions.rank
            if only and self._start(job, job.options):
                return  # an only option that fits now is possible, too
            options = acceptable(job, self.free, self.rules)
        if job.hold or not options:
            self._wait(wait_reasons.nowhere(job))
        elif not self._start(job, options):
            self._block(job, options)

    def _start(self, job: JobInfo, options: Sequence[Option]) -> bool:
        found = self._find(job, options)
        if found is None:
            return False
        option, gpus = found
        self.started.append(Start(job.id, option, gpus))
        return True

    def _find(self, job: JobInfo, options: Sequence[Option]) -> tuple[Option, tuple[GpuId, ...]] | None:
        """Take GPUs for the first option that fits: free ones, else those of others."""
        if self.closed:
            return None
        # The job is kept off the nodes that are withheld from it.
        seen = replace(job, avoids=job.avoids | self.withheld) if self.withheld else job
        if self.taken:
            options = [option for option in options if option.gpu_model not in self.taken]
        for option in options:
            if gpus := self.free.place(option, seen):
                return self._take(option, gpus)
        if self.evictions is None or not self.evictions.rank or not self.rules.may_evict(job, self.now):
            return None
        for option in options:
            if room := self.evictions.make_room(option, seen):
                for victim in room.victims:
                    reason = outranked(victim.priority, job.priority)
                    self.evicted[victim.id] = Preempt(victim.id, reason)
                    self.coming += 1
                return self._take(option, room.gpus)
        return None

    def _move(self, job: JobInfo, holds: Holding) -> None:
        """Move a job that was stopped for a better one if its option fits elsewhere.

        It may stop others there: of those that rank lower none runs while it waits.
        """
        if self.closed or holds.option.gpu_model in self.taken:
            return
        if self.evictions is not None:
            self.evictions.keep_equals(job)
        if found := self._find(job, (holds.option,)):
            self.moved.append(Resize(job.id, *found))
            del self.evicted[job.id]
        elif self.evictions is not None:
            self._turns.append(_Passed(job, (holds.option,)))

    def _take(self, option: Option, gpus: tuple[GpuId, ...]) -> tuple[Option, tuple[GpuId, ...]]:
        self.free.take(option, gpus)
        if self.evictions is not None:
            self.evictions.took(option, gpus)
        return option, gpus

    def _block(self, job: JobInfo, options: Sequence[Option]) -> None:
        held_back = self.taken or self.withheld
        passed = self.closed or bool(held_back and any(self._is_withheld(option, job) for option in options))
        self._withhold_for(job, options)
        turn = _Passed(job, options, self._behind(job) if passed and self.state.explain else "")
        if self.evictions is not None:
            self._turns.append(turn)
        elif self.state.explain:
            self._wait(self._told(turn))

    def _told(self, turn: _Passed) -> Wait:
        until = self._until(turn.job)
        return wait_reasons.busy(turn.job, turn.options[0], self.free, behind=turn.behind, until=until)

    def _until(self, job: JobInfo) -> str:
        """When a job starts for which too few GPUs are free."""
        if self.rules.preempts:
            return wait_reasons.STOPPING
        if self.rules.blocks is _NOTHING or job.topology is _GUARANTEED or self.state.kept_off(job):
            return wait_reasons.PASSED
        return wait_reasons.HELD if self.behind == AHEAD else wait_reasons.OUTRANKED

    def _withhold_for(self, job: JobInfo, options: Sequence[Option]) -> None:
        """Keep from those further down what the rules keep for a job that does not fit."""
        blocks = self.rules.blocks
        if self.state.kept_off(job) or job.topology is _GUARANTEED:
            pass  # what it keeps away from, or lies too far apart for it, must not lie idle for it
        elif blocks is _ALL:
            self.closed = True
        elif blocks is _MODELS:
            for option in options:
                if option.gpu_model not in self.taken:
                    self._withhold(option)

    def _behind(self, job: JobInfo) -> str:
        """Which jobs go first; by the order of arrival only within a class."""
        if self.behind != AHEAD:
            return self.behind
        if self._highest is None:
            self._highest = max(job.priority for job in self.state.waiting)
        return AHEAD_BY_CLASS if job.priority < self._highest else AHEAD

    def _is_withheld(self, option: Option, job: JobInfo) -> bool:
        """Is there a place for the option that a job further ahead waits for?"""
        if option.gpu_model in self.taken:
            return True
        return bool(self.withheld and self.free.place(option, job))

    def _withhold(self, option: Option) -> None:
        """Keep for a job further ahead what it waits for.

        That is a GPU model, or those nodes that suit it.
        """
        nodes = self.free.suited(option)
        if nodes is None:
            self.taken |= {option.gpu_model}
        else:
            self.withheld |= nodes

    def _wait(self, wait: Wait) -> None:
        if self.state.explain:
            (self.waits if self.evictions is None else self._turns).append(wait)


class AcceptedOptions:
    """The options that waiting jobs would take, by job.

    `jobs_of` counts the jobs that would take each GPU model. Both stay as long as the jobs' options and the
    nodes do, whatever is free. least: the GPUs of the smallest option on each GPU model, if anybody says it.
    """

    def __init__(self) -> None:
        self.options: dict[str, Sequence[Option]] = {}
        self.jobs_of: dict[str, int] = {}
        self._models: dict[str, frozenset[str]] = {}
        self.least: Mapping[str, int] | None = None

    def add(self, job: JobInfo, free: FreeGpus, rules: CycleOptions) -> frozenset[str]:
        """Add a job, or its other options; return the GPU models that it would take."""
        if job.id in self.options:
            self.remove(job.id)
        options = self.options[job.id] = acceptable(job, free, rules)
        models = self._models[job.id] = frozenset([option.gpu_model for option in options])
        for model in models:
            self.jobs_of[model] = self.jobs_of.get(model, 0) + 1
        return models

    def remove(self, job_id: str) -> None:
        del self.options[job_id]
        for model in self._models.pop(job_id):
            self.jobs_of[model] -= 1
            if not self.jobs_of[model]:
                del self.jobs_of[model]


def acceptable(job: JobInfo, free: FreeGpus, rules: CycleOptions) -> Sequence[Option]:
    """Return the options that a job would take.

    They are possible on the empty cluster and close to the best of those.
    """
    possible = free.possible(job)
    if len(possible) < 2:
        return possible
    priced = all_priced(job.options)
    found = _scores(possible, job.goal, priced=priced)
    limit = rules.tolerance_of(job.goal) * min(found)
    return [option for option, score in zip(possible, found, strict=True) if score <= limit]


def _scores(options: Sequence[Option], goal: Goal, *, priced: bool) -> list[float]:
    """`Option.score` of each.

    A tick asks for tens of thousands, and calls are most of their time.
    """
    if goal is not _BALANCED:
        return [option.score(goal, priced=priced) for option in options]
    if priced:
        return [balanced(option.duration_s.value, option.cost.value) for option in options]
    times = [option.duration_s.value for option in options]
    return [
        balanced(time_s, time_s * option.config.number_gpus)
        for time_s, option in zip(times, options, strict=True)
    ]
