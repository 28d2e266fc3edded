"""One possible future of a cluster.

It is what runs, ends and arrives until the jobs that wait now have started.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any, NamedTuple

from scheduler.core.ahead.drivers import driver
from scheduler.core.ahead.durations import Draws
from scheduler.core.ahead.lives import PlayedJob
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.cycle.rounds import next_round
from scheduler.core.eligibility import OpenArrays, still_awaited
from scheduler.core.types import Action, GpuId, JobInfo, Preempt, Resize, Start

HORIZON_S = 60 * 86_400.0  # no forecast reaches beyond
HOLD_S = 60.0  # within what time a job that is being stopped, or that waits for options, may start


class Happening(IntEnum):
    """In the order in which they happen at one moment."""

    END = 0
    ARRIVAL = 1
    WAKE = 2  # a time has come: of a job, a window or a round


class Lived(NamedTuple):
    """When a job started and ended in a play; None: not within it.

    gpus: those on which it started.
    """

    start: float | None
    end: float | None
    gpus: tuple[GpuId, ...] = ()


class QueuePlay:
    """A play of one draw. `run` returns the lives of the jobs that wait now.

    The truth of a play is drawn once a job, so that a job which is slower than promised is so on all GPUs.
    Running jobs are measured: the policy sees the drawn time that they have left.
    """

    def __init__(self, given: PlayInput, draws: Draws, number: int) -> None:
        self.given, self.draws, self.number = given, draws, number
        self.now = given.now
        self.driver = driver(given)
        self.lives: dict[str, PlayedJob] = {}
        self.after: dict[str, list[PlayedJob]] = defaultdict(list)  # by the job or array that they await
        self.arrays = OpenArrays()
        self.unknown_s = given.past.usual_s
        self.arrivals = given.arrivals(number)
        self.asked = frozenset(job.id for job in given.waiting)
        self.open = set(self.asked)
        self.cut_short = False  # did it end before everything had happened that is asked for?
        self.kept_back: list[PlayedJob] = []
        self.decided_at = given.decided_at
        self._next = 0
        self._wakes: set[float] = set()
        self._events: list[tuple[float, int, int, Any]] = []
        for job in given.state.jobs:
            self._enter(job)
        for window in given.state.windows:
            self._wake(window.closes_at)
            self._wake(window.ends_at)
        self._arrive()
        self._wake(self.now)

    def run(self, more: Callable[[], bool] = lambda: True) -> dict[str, Lived]:
        """Play until nothing is open.

        more: asked before each decision; the play ends where it says no, with what has happened by then.
        """
        while self._events and self.open:
            if not more():
                self.cut_short = True
                break
            at = self._events[0][0]
            if at > self.given.now + HORIZON_S:
                break
            self.now = at
            while self._events and self._events[0][0] == at:
                _, kind, _, subject = heappop(self._events)
                self._happens(Happening(kind), subject)
            self._decide()
        return {job: self._lived(self.lives[job]) for job in self.asked}

    def _lived(self, life: PlayedJob) -> Lived:
        runs_on = life.ended_at is None and life.info.holds is not None and not self.given.policy.preempts
        return Lived(life.started_at, life.ends_at if runs_on else life.ended_at, life.first_gpus)

    # what happens

    def _happens(self, kind: Happening, subject: Any) -> None:
        if kind is Happening.END:
            life, turn = subject
            if turn == life.turn:
                self._ends(life)
        elif kind is Happening.ARRIVAL:
            self._enter(subject)
            self._arrive()
        else:
            self._wakes.discard(self.now)
            if self.kept_back and self.now >= self.given.now + HOLD_S:
                self._let_go()

    def _enter(self, job: JobInfo) -> None:
        life = PlayedJob(job, self.draws.z(job.id, self.number), self.unknown_s)
        self.lives[job.id] = life
        self.arrays.add(job)
        if job.holds is not None:
            life.resume(self.now, self.given.left.get(job.id))
            self.driver.starts(life)
            self._plan_end(life)
            return
        life.info = replace(job, preemptible=job.borrows)  # once it has started
        for awaited in job.awaits:
            self.after[awaited].append(life)
        if job.begins_at is not None and job.begins_at > self.now:
            self._wake(job.begins_at)
        if job.hold:
            self.kept_back.append(life)
            self._wake(self.now + HOLD_S)
        else:
            self.driver.waits(life)

    def _let_go(self) -> None:
        """By now, jobs that were being stopped have left, and new options have been found."""
        for life in self.kept_back:
            life.info = replace(life.info, hold="")
            self.driver.waits(life)
        self.kept_back.clear()

    def _ends(self, life: PlayedJob) -> None:
        self.driver.leaves(life)
        life.ended_at = self.now
        life.turn += 1
        self.open.discard(life.info.id)
        ended = self.arrays.end(life.info)
        followers = {later.info.id: later for one in ended for later in self.after.pop(one, ())}
        for later in followers.values():
            later.info = replace(later.info, awaits=still_awaited(later.info.awaits, ended))
            if later.info.holds is None:
                self.driver.waits(later)
        if life.info.id not in self.asked:
            del self.lives[life.info.id]

    def _arrive(self) -> None:
        job = next(self.arrivals, None)
        if job is not None:
            self._push(job.submitted_at, Happening.ARRIVAL, job)

    # decisions

    def _decide(self) -> None:
        least_s = self.driver.coarse * (self.now - self.given.now)
        round_s = max(self.given.policy.round_s or 0.0, least_s)
        due_at = next_round(self.decided_at, round_s, self.now)
        if due_at > self.now:
            self._wake(due_at)
            return
        self._shut_windows()
        self._apply(self.driver.decide(self.now))
        self.decided_at = self.now
        if self.given.policy.round_s:
            self._wake(self.now + round_s)

    def _shut_windows(self) -> None:
        """Stop the jobs that still run in a window that closes now; they go on elsewhere."""
        shut = [
            window for window in self.given.state.windows if window.closes_at <= self.now < window.ends_at
        ]
        running = [life for life in self.lives.values() if life.info.holds and life.ended_at is None]
        for life in running if shut else ():
            nodes = {node for node, _ in life.info.holds.gpus} if life.info.holds else set()
            if any(window.nodes & nodes and not window.admits(life.info.team) for window in shut):
                self._stop(life, preempted=False)

    def _apply(self, actions: Iterable[Action]) -> None:
        placed: list[Start | Resize] = []
        for action in actions:
            if isinstance(action, Preempt):
                self._stop(self.lives[action.job], preempted=True)
            elif isinstance(action, Resize):
                holds = self.lives[action.job].info.holds
                if holds is None or holds.option != action.option or {*holds.gpus} != {*action.gpus}:
                    self._stop(self.lives[action.job], preempted=False)
                    placed.append(action)
            elif isinstance(action, Start):
                placed.append(action)
        for action in placed:
            life = self.lives[action.job]
            life.start(self.now, action.option, action.gpus)
            self.driver.starts(life)
            self._plan_end(life)
            if not self.given.policy.preempts:  # its end is known
                self.open.discard(action.job)

    def _stop(self, life: PlayedJob, *, preempted: bool) -> None:
        self.driver.leaves(life)
        life.stop(self.now, preempted=preempted)
        self.driver.waits(life)

    # the heap

    def _plan_end(self, life: PlayedJob) -> None:
        self._push(life.ends_at, Happening.END, (life, life.turn))

    def _wake(self, at: float) -> None:
        if at >= self.now and at not in self._wakes:
            self._wakes.add(at)
            self._push(at, Happening.WAKE, None)

    def _push(self, at: float, kind: Happening, subject: Any) -> None:
        self._next += 1
        heappush(self._events, (max(at, self.now), kind, self._next, subject))
