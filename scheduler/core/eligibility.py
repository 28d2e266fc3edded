"""Which waiting jobs may be considered now: one rule for every policy.

Slurm calls such jobs eligible. A policy never sees the others, so none can start them, keep GPUs for
them or stop a job for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from scheduler.core.market.types import NodeTerms
from scheduler.core.types import ClusterState, JobInfo, Plan, Wait
from scheduler.states import WaitState

NAMED = 3  # jobs and arrays that a reason lists by id


def eligible(state: ClusterState, now: float) -> tuple[ClusterState, tuple[Wait, ...]]:
    """Return the state without the jobs that may not start yet, and their Waits."""
    waits = [wait for job in state.jobs if (wait := _not_yet(job, now))]
    waits += _beyond_limits(state.jobs, {wait.job for wait in waits})
    if not waits:
        return state, ()
    left_out = {wait.job for wait in waits}
    return replace(state, jobs=tuple(job for job in state.jobs if job.id not in left_out)), tuple(waits)


def off_spot_nodes(state: ClusterState) -> ClusterState:
    """The state in which only jobs that may use spot nodes come near them."""
    spot = spot_nodes(state)
    return replace(state, jobs=tuple(off_nodes(job, spot) for job in state.jobs)) if spot else state


def spot_nodes(state: ClusterState) -> frozenset[str]:
    """The nodes that may be withdrawn, by id."""
    return frozenset(node.id for node in state.nodes if node.kind is NodeTerms.SPOT)


def off_nodes(job: JobInfo, spot: frozenset[str]) -> JobInfo:
    """The job, which keeps off these spot nodes unless it may use them."""
    return job if job.spot or not spot else replace(job, avoids=job.avoids | spot)


class OpenArrays:
    """How many jobs of each array have not ended."""

    def __init__(self, jobs: Iterable[JobInfo] = ()) -> None:
        self._left = Counter(job.array for job in jobs if job.array)

    def add(self, job: JobInfo) -> None:
        if job.array:
            self._left[job.array] += 1

    def end(self, job: JobInfo) -> tuple[str, ...]:
        """End a job; return what others may have waited for.

        It is the job itself, and its array if no other job of that is left.
        """
        if not job.array:
            return (job.id,)
        self._left[job.array] -= 1
        return (job.id,) if self._left[job.array] else (job.id, job.array)


def comes_after(job: JobInfo, other: JobInfo) -> bool:
    """Does the job wait for the other one, or for its whole array?"""
    return other.id in job.awaits or other.array in job.awaits


def still_awaited(awaits: tuple[str, ...], ended: tuple[str, ...]) -> tuple[str, ...]:
    """The jobs and arrays that a job waits for, without those that have ended."""
    return tuple(one for one in awaits if one not in ended)


def with_waits(plan: Plan, not_yet: tuple[Wait, ...]) -> Plan:
    """The plan with the jobs that the policy never saw."""
    return replace(plan, actions=(*plan.actions, *not_yet))


def _not_yet(job: JobInfo, now: float) -> Wait | None:
    if job.holds is not None or job.hold:  # a hold is told first: it may end the job
        return None
    if job.held:
        return Wait(job.id, WaitState.HELD, job.held)
    if job.awaits:
        return Wait(job.id, WaitState.DEPENDENCY, _after(job.awaits))
    if job.begins_at is not None and job.begins_at > now:
        at = datetime.fromtimestamp(job.begins_at, UTC).isoformat(timespec="seconds")
        return Wait(job.id, WaitState.BEGIN_TIME, f"It may not start before {at}.")
    return None


def _beyond_limits(jobs: Sequence[JobInfo], not_yet: Collection[str]) -> Iterator[Wait]:
    """Show only as many jobs of each array as may still start.

    Jobs submitted first come first.
    """
    limited = [job for job in jobs if job.array and job.array_limit]
    holding = Counter(job.array for job in limited if job.holds is not None)
    waiting = (job for job in limited if job.holds is None and not job.hold)
    for job in sorted(waiting, key=lambda job: (job.submitted_at, job.id)):
        if job.id in not_yet:
            continue
        holding[job.array] += 1
        if holding[job.array] > job.array_limit:
            text = f"At most {job.array_limit} of the jobs of {job.array} may run at a time."
            yield Wait(job.id, WaitState.ARRAY_LIMIT, text)


def _after(awaited: tuple[str, ...]) -> str:
    named, more = ", ".join(awaited[:NAMED]), len(awaited) - NAMED
    return f"It comes after {named}{f' and {more} more' if more > 0 else ''}."
