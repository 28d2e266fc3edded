"""Settings of a simulation, apart from trace, cluster and policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from knowledge.core.domain.types import Goal
from scheduler.core.limits import Limits, Window
from scheduler.core.types import JobInfo, Policy
from scheduler.simulator.world.runs import Run

RETRIES = 1  # further options after one that did not run, as the live portal grants


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """From a moment on, other limits hold or another policy decides; None: as before."""

    at: float
    limits: Limits | None = None
    policy: Policy | None = None


class ActKind(StrEnum):
    """Kinds of acts of people on jobs."""

    HOLD = "hold"  # it does not start until it is released
    RELEASE = "release"
    FRONT = "front"  # it goes before all others of its class
    BACK = "back"
    PAUSE = "pause"  # it is saved and stopped, and does not start until it is resumed
    RESUME = "resume"


class Act(NamedTuple):
    """An act of a person on a job at a moment.

    first: of a move to the front, its share of a class; of several jobs the one with the largest goes first.
    """

    at: float
    job: str
    kind: ActKind
    first: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """All times in s.

    round_s: how long a round lasts from its decision on (None: as the policy says; 0: decide at every event).
    restart_s: what a start costs a job that ran before, unless the trace says so itself.
    checkpoint_s: time between checkpoints, which matters when a node fails; 0 saves every step. A job that
    is stopped on purpose saves first; `saves_first`: policies know that.
    report_s: ends are heard of at whole multiples of it, as nodes report to the portal; 0: at once.
    tick_s: a policy that decides at events is asked at least so often while jobs run; 0: at events alone.
    limits, windows: quotas of groups, limits of users and times in which nodes are closed, as the live loop
    keeps them. changes: of limits and of the policy, in the order of time. acts: of people, likewise.
    """

    round_s: float | None = None
    restart_s: float = 0.0
    checkpoint_s: float = 0.0
    saves_first: bool = False
    report_s: float = 0.0
    goal: Goal = Goal.BALANCED
    limits: Limits = field(default_factory=Limits)
    windows: tuple[Window, ...] = ()
    changes: tuple[RuleChange, ...] = ()
    acts: tuple[Act, ...] = ()
    tick_s: float = 0.0

    def round_of(self, policy: Policy) -> float | None:
        """The length of a policy's rounds."""
        return policy.round_s if self.round_s is None else self.round_s

    def restart_of(self, run: Run) -> float:
        return self.restart_s if run.job.restart_s is None else run.job.restart_s

    def seen(self, run: Run, now: float) -> JobInfo:
        """The job as policies see it."""
        restart_s = self.restart_s if run.job.restart_s is None else run.job.restart_s
        return run.seen(now, self.goal, restart_s, 0.0 if self.saves_first else self.checkpoint_s)
