"""Weighted fair share: teams take turns, and people within them.

The team with the least decayed use for its weight (`scheduler.core.ordering.decayed_use`) goes first; a
person without a team stands for one. Within one decision jobs further down pay for their predicted time
beforehand, so that nobody takes all free GPUs at once. Any job that fits passes one that does not, so that no
GPU idles for a turn; with a reservation only where that delays nobody. No job is stopped. Source: decayed
fair share (Kay and Lauder, CACM 1988), in a tree as Slurm's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heapreplace
from math import isfinite
from typing import Any, ClassVar, NamedTuple

from scheduler.core.cycle.options import CycleOptions, HeadOfLine
from scheduler.core.cycle.reserving import decide_in_order
from scheduler.core.ordering.decayed_use import Accounts, accounts, used_since
from scheduler.core.remaining_work import option_of, remaining_gpu_s
from scheduler.core.types import ClusterState, Description, JobInfo, Plan, Start

UNKNOWN_S = 3600.0  # charged per GPU beforehand where nothing is predicted
BEHIND = "Teams and users who received less of their share go first."


@dataclass(frozen=True, slots=True, kw_only=True)
class Fair:
    name: str = "fair"
    description: ClassVar[Description] = Description(
        summary="The team, and in it the user, who received the least GPU time recently for its weight goes"
        " first; older use counts less.",
        order="team, then user with least decayed GPU time per weight, half-life 7 days",
        needs="running jobs",
        source="Kay and Lauder 1988",
    )
    rules: CycleOptions = field(default_factory=lambda: CycleOptions(blocks=HeadOfLine.NOTHING))
    preempts: bool = False
    round_s: float | None = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs in turns of their teams and users, larger priorities first."""
        used = self.used(state.memory, now) if state.used is None else dict(state.used)
        order = in_turns(state.waiting, used)
        actions, reservation = decide_in_order(order, state, now, self.rules, BEHIND)
        started = {action.job: len(action.gpus) for action in actions if isinstance(action, Start)}
        held: dict[str, float] = defaultdict(float)
        for job in sorted(state.jobs, key=lambda job: job.id):
            gpus = len(job.holds.gpus) if job.holds else started.get(job.id, 0)
            for account in set(_accounts(job)) if gpus else ():
                held[account] += gpus
        return Plan(actions, {"at": now, "used": used, "held": dict(held), **reservation})

    def used(self, memory: Mapping[str, Any], now: float) -> dict[str, float]:
        """Return the decayed GPU-seconds of each account, as this policy saw them.

        They are the faded earlier use plus the use of the GPUs held since then.
        """
        return used_since(memory["used"], memory["held"], now - memory["at"]) if memory else {}


def in_turns(jobs: Iterable[JobInfo], used: Mapping[str, float]) -> list[JobInfo]:
    """Each user's jobs in their order; teams, and users in them, take turns."""
    classes: dict[float, dict[str, dict[str, list[JobInfo]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for job in sorted(jobs, key=lambda job: (job.submitted_at, job.id), reverse=True):
        team, person = _accounts(job)
        classes[job.priority][team][person].append(job)
    charged = dict(used)
    order: list[JobInfo] = []
    for _, teams in sorted(classes.items(), reverse=True):
        order += _of_class(teams, charged)
    return order


class _Turn(NamedTuple):
    """The smallest goes first."""

    share: float  # decayed use per weight
    submitted_at: float  # of the next job
    job: str
    account: str


def _of_class(teams: Mapping[str, Mapping[str, list[JobInfo]]], charged: dict[str, float]) -> list[JobInfo]:
    """The order of jobs of one class; `charged` goes up by what they are given.

    teams: the jobs of each person of each team, the next one last.
    """

    def turn(account: str, weight: float, job: JobInfo) -> _Turn:
        return _Turn(charged.get(account, 0.0) / weight, job.submitted_at, job.id, account)

    def of_person(team: str, person: str) -> _Turn:
        return turn(person, teams[team][person][-1].weight, teams[team][person][-1])

    def of_team(team: str) -> _Turn:
        job = teams[team][people[team][0].account][-1]
        return turn(team, job.team_weight if job.team else job.weight, job)

    people = {team: [of_person(team, person) for person in jobs] for team, jobs in teams.items()}
    for heap in people.values():
        heapify(heap)
    turns = [of_team(team) for team in teams]
    heapify(turns)
    order: list[JobInfo] = []
    while turns:
        team = turns[0].account
        person = people[team][0].account
        order.append(job := teams[team][person].pop())
        for account in {team, person}:
            charged[account] = charged.get(account, 0.0) + _price(job)
        _go_on(people[team], partial(of_person, team, person) if teams[team][person] else None)
        _go_on(turns, partial(of_team, team) if people[team] else None)
    return order


def _go_on(heap: list[_Turn], following: Callable[[], _Turn] | None) -> None:
    """Let the first of the heap wait for its next turn, or leave (None)."""
    if following is None:
        heappop(heap)
    else:
        heapreplace(heap, following())


def _price(job: JobInfo) -> float:
    price = remaining_gpu_s(job)
    option = option_of(job)
    return price if isfinite(price) else UNKNOWN_S * (option.gpus if option else 0)


def _accounts(job: JobInfo) -> Accounts:
    return accounts(job.team, job.user)


FAIR = Fair()
