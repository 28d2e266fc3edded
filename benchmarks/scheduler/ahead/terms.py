"""Spot nodes, quotas of teams, limits of people and dependencies around a trace.

Public traces name none of them, so each job gets a team, a person and perhaps an earlier job by chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.core.limits import Limits, Quota, UserLimit
from scheduler.core.market.types import NodeTerms
from scheduler.core.quotas import admission
from scheduler.core.types import ClusterState, JobInfo, NodeInfo, Plan, Policy
from scheduler.simulator.inputs.trace import TraceJob

TEAMS, PEOPLE = 4, 12  # of 64 GPUs, each team is guaranteed a quarter
MAY_USE_SPOT, COMES_AFTER = 0.3, 0.15  # shares of jobs
EARLIER = 5  # a job comes after one of so many that were submitted before it


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one cluster; those of a job follow from its id."""

    spot: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)

    def of(self, job: JobInfo) -> JobInfo:
        """The job with its person and team, and with its leave to use spot nodes."""
        if not self.spot and not self.limits:
            return job
        person = _luck(job.id, "person").randrange(PEOPLE)
        spot = job.spot or (bool(self.spot) and _luck(job.id, "spot").random() < MAY_USE_SPOT)
        return replace(job, user=f"p{person}", team=f"t{person % TEAMS}", spot=spot)

    def shown(self, state: ClusterState) -> ClusterState:
        """The state as a portal with these terms would have it."""
        if not self.spot and not self.limits:
            return state
        return ClusterState(
            jobs=tuple(self.of(job) for job in state.jobs),
            nodes=tuple(self._node(node) for node in state.nodes),
            memory=state.memory,
            explain=False,
            limits=self.limits,
        )

    def _node(self, node: NodeInfo) -> NodeInfo:
        return replace(node, kind=NodeTerms.SPOT) if node.id in self.spot else node


NO_TERMS = Terms()


def mixed_terms(nodes: Iterable[str]) -> Terms:
    """A quarter of the nodes is spot; teams have quotas, and people limits."""
    named = sorted(nodes)
    quotas = (Quota(team=f"t{n}", guaranteed=16, borrow_limit=16) for n in range(TEAMS))
    people = (UserLimit(user=f"p{n}", running_jobs=4, gpus=32) for n in range(PEOPLE))
    return Terms(frozenset(named[: len(named) // 4]), Limits(tuple(quotas), tuple(people)))


def chained(jobs: tuple[TraceJob, ...]) -> tuple[TraceJob, ...]:
    """The jobs, of which some come after the end of an earlier one."""
    found = []
    for number, job in enumerate(jobs):
        luck = _luck(job.job_id, "after")
        if number >= EARLIER and luck.random() < COMES_AFTER:
            job = replace(job, after_ended=jobs[number - 1 - luck.randrange(EARLIER)].job_id)
        found.append(job)
    return tuple(found)


@dataclass(frozen=True)
class Within:
    """A policy that decides within the terms, as a tick asks it."""

    inner: Policy
    terms: Terms

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def decide(self, state: ClusterState, now: float) -> Plan:
        if self.terms is NO_TERMS:
            return self.inner.decide(state, now)
        return admission.decide(self.inner, self.terms.shown(state), now)


def _luck(job: str, what: str) -> random.Random:
    return random.Random(f"{what}/{job}")
