"""The facts from which the queue is played ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import median

from knowledge.core.domain.types import Interval
from scheduler.core.ahead.durations import UNKNOWN_S
from scheduler.core.cycle.options import HeadOfLine
from scheduler.core.cycle.ranked import Ranked
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.policies.fifo import by_arrival
from scheduler.core.types import ClusterState, JobInfo, Policy

A_DAY_S = 86_400.0
LEAST_ARRIVALS = 5  # fewer say nothing about a rate


@dataclass(frozen=True, slots=True, kw_only=True)
class PastArrivals:
    """Jobs that came from one moment to another, in their order.

    They are as they were when they came.
    """

    begins_at: float
    ends_at: float
    jobs: tuple[JobInfo, ...] = ()

    def resampled(self, now: float, draw: int, seed: int = 0) -> Iterator[JobInfo]:
        """Jobs to come: the past from a random moment on, over and over.

        So bursts stay bursts.

        A past of several days is moved by whole days, so that hours of the day stay, too.
        """
        span_s = self.ends_at - self.begins_at
        if len(self.jobs) < LEAST_ARRIVALS or span_s <= 0:
            return
        rng = Random(f"{seed}/arrivals/{draw}")
        days = int(span_s // A_DAY_S)
        if days >= 2:
            span_s, shift_s = days * A_DAY_S, rng.randrange(days) * A_DAY_S
            shift_s += (now - self.ends_at) % A_DAY_S
        else:
            shift_s = rng.random() * span_s
        begins_at = self.ends_at - span_s
        times = [(job.submitted_at - begins_at - shift_s) % span_s for job in self.jobs]
        order = sorted((at, number) for number, at in enumerate(times) if self._counts(number, begins_at))
        lap = 0
        while order:
            for after_s, number in order:
                job = self.jobs[number]
                at = now + lap * span_s + after_s
                yield replace(job, id=f"{job.id}~{lap}", submitted_at=at)
            lap += 1

    def _counts(self, number: int, begins_at: float) -> bool:
        return self.jobs[number].submitted_at >= begins_at

    @property
    def usual_s(self) -> float:
        """The median duration that was promised; an hour where nothing was."""
        promised = [job.options[0].duration_s.value for job in self.jobs if job.options]
        known = [value for value in promised if value > 0]
        return median(known) if known else UNKNOWN_S


NO_PAST = PastArrivals(begins_at=0.0, ends_at=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayInput:
    """A cluster at `now` under a policy, and what is known of its future.

    left: seconds that running jobs have left, where they were measured; the promise counts for the others,
    given how long they run already. decided_at: when a policy of rounds decided last. seed: of the draws.
    asked: the jobs whose starts are wanted, by id; None: all that wait.
    """

    state: ClusterState
    now: float
    policy: Policy
    left: Mapping[str, Interval] = field(default_factory=dict)
    past: PastArrivals = NO_PAST
    decided_at: float | None = None
    seed: int = 0
    asked: frozenset[str] | None = None

    @property
    def waiting(self) -> Sequence[JobInfo]:
        """Jobs whose start can be forecast.

        Nobody holds them, and a ready node could run them.
        """
        nodes = FreeGpus(self.state.nodes)
        return [
            job
            for job in self.state.waiting
            if (self.asked is None or job.id in self.asked)
            and not job.held
            and any(nodes.could_hold(option, job) for option in job.options)
        ]

    def arrivals(self, draw: int) -> Iterator[JobInfo]:
        """The jobs to come, if they can matter to those that wait now."""
        return self.past.resampled(self.now, draw, self.seed) if self._overtaken else iter(())

    @property
    def _overtaken(self) -> bool:
        """May a later job start before an earlier one?

        Under strict orders of arrival it may not, unless its class is higher or quotas tell them apart.
        """
        policy = self.policy
        if not isinstance(policy, Ranked) or policy.key is not by_arrival or self.state.limits:
            return True
        if policy.rules.blocks in (HeadOfLine.NOTHING, HeadOfLine.RESERVATION):
            return True
        lowest = min((job.priority for job in self.state.waiting), default=0)
        return any(job.priority > lowest for job in self.past.jobs)
