"""Terms of a waiting job that keep it from starting.

They are its deadline and time limit, whether it may be stopped, and how close its GPUs have to lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil, inf
from typing import Any

from knowledge.core.domain.types import Option
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.others import windows_of
from scheduler.core.changes.queue import with_job
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import JobInfo, Topology

LIMITS = 3
UNKNOWN_LIMITS_S = (3600, 4 * 3600, 12 * 3600)  # tried for a job of which nobody knows how long it takes
A_MINUTE_S = 60
PRESSED_WITHIN_S = 300  # of the answer, until which a limit has to leave time
LEAST_LIMIT_S = 600

Change = tuple[str, PlayInput, dict[str, Any]]  # its subject, the queue with it, and the body of the verb


@dataclass(frozen=True, slots=True)
class LaterDeadline:
    """The least deadline that allows one place more (s since 1970), and its options."""

    at: float
    options: tuple[Option, ...]

    @property
    def text(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).isoformat(timespec="seconds")


def least_later_deadline(now: float, known: Sequence[Option], every: Sequence[Option]) -> float | None:
    """When the job would end on the first place that its deadline excludes.

    None: it excludes none. known: the options that the job has. every: those that it would have without a
    deadline.
    """
    kept = {option.place for option in known}
    ends = (option.duration_s.high or option.duration_s.value for option in every if option.place not in kept)
    end_s = min((end for end in ends if end > 0), default=inf)
    at = now + PRESSED_WITHIN_S + end_s
    return None if at == inf else ceil(at / A_MINUTE_S) * float(A_MINUTE_S)


def later_deadlines(given: PlayInput, job: JobInfo, later: LaterDeadline | None) -> Iterator[Change]:
    if later and later.options and (job.due_at is None or later.at > job.due_at):
        changed = replace(job, options=later.options, due_at=later.at)
        yield later.text, with_job(given, changed), {"deadline_at": later.text}


def time_limits(given: PlayInput, job: JobInfo, ran_s: float) -> Iterator[Change]:
    """Time limits with which it would be over before a window, or at all.

    A limit counts all attempts together; `ran_s`: what they have lasted so far.
    """
    found: set[float] = set()
    if not job.borrows:
        closes = (window.closes_at for window in windows_of(given, job))
        found |= {at - given.now - PRESSED_WITHIN_S for at in closes}
    if any(not option.duration_s.value > 0 for option in job.options):
        found |= {*UNKNOWN_LIMITS_S}
    allowed_s = inf if job.run_left_s is None else job.run_left_s
    tried = sorted((left_s for left_s in found if LEAST_LIMIT_S <= left_s < allowed_s), reverse=True)
    for left_s in tried[:LIMITS]:
        limit_s = int((ran_s + left_s) // A_MINUTE_S * A_MINUTE_S)
        changed = with_job(given, replace(job, run_left_s=limit_s - ran_s))
        yield str(limit_s), changed, {"max_run_s": limit_s}


def stopped_for_others(given: PlayInput, job: JobInfo) -> Iterator[Change]:
    """A job that may be stopped may borrow, and may start before a window."""
    if not job.borrows and (given.state.windows or given.state.limits):
        yield job.id, with_job(given, replace(job, borrows=True)), {"preemptible": True}


def looser(given: PlayInput, job: JobInfo) -> Iterator[Change]:
    """Close GPUs if possible, where they are required."""
    if job.topology is Topology.GUARANTEED:
        level = TopologyLevel(job.level).word
        changed = with_job(given, replace(job, topology=Topology.BEST_EFFORT))
        yield level, changed, {"topology": Topology.BEST_EFFORT.value, "topology_level": level}
