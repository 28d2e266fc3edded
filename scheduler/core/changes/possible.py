"""The changes that may let a waiting job start sooner.

Each comes with the queue as it would be. They are bounded in number, as each is played ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from knowledge.core.domain.types import Goal, Option
from knowledge.core.recommend.objectives import affordable, ranked
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.others import quota_changes, window_changes, without_others
from scheduler.core.changes.queue import with_job
from scheduler.core.changes.terms import (
    LaterDeadline,
    later_deadlines,
    looser,
    stopped_for_others,
    time_limits,
)
from scheduler.core.eligibility import spot_nodes
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.types import JobInfo
from scheduler.states import PriorityClass

PLACEMENTS = 3  # on idle GPUs, and as many on others


class ChangeKind(StrEnum):
    PLACEMENT = "placement"  # other GPUs, or fewer
    OPEN = "open"  # a fixed value or the deadline is left open
    FIXED = "fixed"  # other fixed values, with which a node could run it
    BUDGET = "budget"  # a larger one
    DEADLINE = "deadline"  # a later one
    LIMIT = "limit"  # a shorter time limit
    STOPPABLE = "stoppable"  # it may be stopped for others
    CLOSE = "close"  # close GPUs if possible, where they are required
    GOAL = "goal"
    CLASS = "class"  # a higher one
    SPOT = "spot"  # nodes that may be withdrawn, too
    QUOTA = "quota"  # the limit that it waits for is lifted
    RELEASE = "release"  # of an administrator's hold
    BEGIN = "begin"  # at once, instead of at its time to begin
    WINDOW = "window"  # one that keeps it off nodes does not take place
    JOB = "job"  # another one ends now


@dataclass(frozen=True, slots=True)
class PossibleChange:
    """A change, and the queue with it.

    subject: what it is about: a class, the name of a field, a job, a window. change: the body that the verb
    `change` takes, in JSON values; empty where it is no change of the job itself.
    """

    kind: ChangeKind
    subject: str
    given: PlayInput
    change: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """The options that a job would have if less were fixed, best first.

    anywhere: with every place open. opened: by the field that would be left open, such as params.number_gpus
    or deadline_at. spot: if it might use spot nodes, too. mended: where no node can run it as it is, those
    with the fixed values `instead`. later: with a later deadline. ran_s: how long it has run so far.
    """

    anywhere: tuple[Option, ...] = ()
    opened: Mapping[str, tuple[Option, ...]] = field(default_factory=dict)
    spot: tuple[Option, ...] = ()
    instead: Mapping[str, Any] = field(default_factory=dict)
    mended: tuple[Option, ...] = ()
    later: LaterDeadline | None = None
    ran_s: float = 0.0


def possible_changes(given: PlayInput, job: JobInfo, options: OpenOptions) -> list[PossibleChange]:
    """Return them in no order that counts."""
    return [
        *_placements(given, job, options.anywhere),
        *_opened(given, job, options.opened),
        *_mended(given, job, options),
        *_budgets(given, job, options.anywhere),
        *_goals(given, job),
        *_classes(given, job),
        *_on_spot(given, job, options.spot),
        *_released(given, job),
        *_begun(given, job),
        *(PossibleChange(ChangeKind.DEADLINE, *one) for one in later_deadlines(given, job, options.later)),
        *(PossibleChange(ChangeKind.LIMIT, *one) for one in time_limits(given, job, options.ran_s)),
        *(PossibleChange(ChangeKind.STOPPABLE, *one) for one in stopped_for_others(given, job)),
        *(PossibleChange(ChangeKind.CLOSE, *one) for one in looser(given, job)),
        *(PossibleChange(ChangeKind.QUOTA, *one) for one in quota_changes(given, job)),
        *(PossibleChange(ChangeKind.WINDOW, *one) for one in window_changes(given, job)),
        *(PossibleChange(ChangeKind.JOB, *one) for one in without_others(given, job)),
    ]


def _placements(given: PlayInput, job: JobInfo, anywhere: Sequence[Option]) -> Iterator[PossibleChange]:
    """Changes to one bundle alone: the fastest idle ones, and the smallest others."""
    free, bundles = FreeGpus(given.state.nodes), _by_bundle(affordable(anywhere, job.budget))
    possible = {key: found for key, found in bundles.items() if any(free.could_hold(o, job) for o in found)}
    possible = {key: found for key, found in possible.items() if {o.key for o in job.options} != {key}}
    idle = {key for key, found in possible.items() if any(free.place(option, job) for option in found)}
    fastest = sorted(idle, key=lambda key: possible[key][0].duration_s.value)
    smallest = sorted(
        possible.keys() - idle, key=lambda key: (possible[key][0].gpus, possible[key][0].duration_s.value)
    )
    for key in (*fastest[:PLACEMENTS], *smallest[:PLACEMENTS]):
        first = possible[key][0]
        place = {"gpu_model": first.gpu_model, "number_gpus": first.gpus, "number_nodes": first.nodes}
        changed = replace(job, options=tuple(possible[key]))
        yield PossibleChange(ChangeKind.PLACEMENT, key, with_job(given, changed), {"params": place})


def _by_bundle(options: Sequence[Option]) -> dict[str, list[Option]]:
    found: dict[str, list[Option]] = {}
    for option in options:
        found.setdefault(option.key, []).append(option)
    return found


def _opened(
    given: PlayInput, job: JobInfo, opened: Mapping[str, tuple[Option, ...]]
) -> Iterator[PossibleChange]:
    for name, options in opened.items():
        if options and set(options) != set(job.options):
            _, _, param = name.partition("params.")
            change = {"params": {param: None}} if param else {name: None}
            due_at = None if name == "deadline_at" else job.due_at
            changed = with_job(given, replace(job, options=options, due_at=due_at))
            yield PossibleChange(ChangeKind.OPEN, name, changed, change)


def _mended(given: PlayInput, job: JobInfo, options: OpenOptions) -> Iterator[PossibleChange]:
    if options.mended and not job.options:
        changed = with_job(given, replace(job, options=options.mended, no_option=""))
        names = ", ".join(sorted(options.instead))
        yield PossibleChange(ChangeKind.FIXED, names, changed, {"params": dict(options.instead)})


def _budgets(given: PlayInput, job: JobInfo, anywhere: Sequence[Option]) -> Iterator[PossibleChange]:
    """The least budget that allows one place more."""
    known = {option.key for option in job.options}
    dearer = [option for option in anywhere if option.key not in known]
    dearer = [option for option in dearer if job.budget is not None and option.cost.value > job.budget]
    if dearer:
        budget = round(1.01 * min(option.cost.value for option in dearer), 4)
        options = affordable(anywhere, budget)
        changed = with_job(given, replace(job, options=options, budget=budget))
        yield PossibleChange(ChangeKind.BUDGET, str(budget), changed, {"budget": budget})


def _goals(given: PlayInput, job: JobInfo) -> Iterator[PossibleChange]:
    """Other goals, with which a job takes other places rather than waits."""
    for goal in (Goal.BALANCED, Goal.FASTEST) if len(job.options) > 1 else ():
        if goal is not job.goal:
            changed = replace(job, goal=goal, options=ranked(job.options, goal))
            yield PossibleChange(ChangeKind.GOAL, goal.value, with_job(given, changed), {"goal": goal.value})


def _classes(given: PlayInput, job: JobInfo) -> Iterator[PossibleChange]:
    for one in PriorityClass:
        if one > job.priority:
            changed = with_job(given, replace(job, priority=one.value))
            yield PossibleChange(ChangeKind.CLASS, one.word, changed, {"priority": one.word})


def _on_spot(given: PlayInput, job: JobInfo, options: tuple[Option, ...]) -> Iterator[PossibleChange]:
    if options and not job.spot and spot_nodes(given.state):
        changed = with_job(given, replace(job, spot=True, options=options, no_option=""))
        yield PossibleChange(ChangeKind.SPOT, "yes", changed, {"spot": "yes"})


def _released(given: PlayInput, job: JobInfo) -> Iterator[PossibleChange]:
    if job.held:
        yield PossibleChange(ChangeKind.RELEASE, job.id, with_job(given, replace(job, held="")))


def _begun(given: PlayInput, job: JobInfo) -> Iterator[PossibleChange]:
    if job.begins_at is not None and job.begins_at > given.now:
        changed = with_job(given, replace(job, begins_at=None))
        yield PossibleChange(ChangeKind.BEGIN, job.id, changed)
