"""Quotas of teams, limits of people and windows as plain values."""

from __future__ import annotations

from dataclasses import dataclass

ALL_MODELS = ""  # the GPU model of a quota over all models together
NO_TEAM = ""  # the team of a job that belongs to none


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """GPUs that a team is guaranteed, of one model or of all together.

    borrow_limit: how many more it may use while they are idle; None: any.
    lending_limit: how many of its guaranteed ones others may use while they are idle; None: all.
    """

    team: str
    gpu_model: str = ALL_MODELS
    guaranteed: int = 0
    borrow_limit: int | None = None
    lending_limit: int | None = None

    @property
    def kept(self) -> int:
        """Guaranteed GPUs that are never lent."""
        return 0 if self.lending_limit is None else max(0, self.guaranteed - self.lending_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimit:
    """The most that a person's jobs may hold at a time; None: any amount.

    gpu_s_left: GPU-seconds that are left of this month.
    """

    user: str
    running_jobs: int | None = None
    gpus: int | None = None
    gpu_s_left: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """All quotas and limits in force; false if there are none."""

    quotas: tuple[Quota, ...] = ()
    users: tuple[UserLimit, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.quotas or self.users)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time in which nodes are closed to all but a team; times in s.

    closes_at: some time before it begins, so that what runs there has saved its work by then. team empty:
    closed to everybody. in_words: the window in words for owners of jobs.
    """

    closes_at: float
    ends_at: float
    nodes: frozenset[str]
    team: str = NO_TEAM
    in_words: str = ""

    def admits(self, team: str) -> bool:
        """May the jobs of this team use the nodes?"""
        return self.team != NO_TEAM and team == self.team
