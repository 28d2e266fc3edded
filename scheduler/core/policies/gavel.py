"""Gavel: time shares that make the worst-off job as well off as possible.

A linear program finds X[j, t], the share of time job j spends on GPU type t, so that the least
normalised throughput is largest. It is normalised by the throughput that the job would get from
an equal share of the cluster, times its GPUs, and by its user's weight. The shares are found anew
once jobs have come or gone, but not more often than every `reset_s`. Rounds realise them: the
larger X over the share received since they were found, the earlier the turn; only what is left over then
goes to jobs without a share there.
Source: Narayanan et al., Gavel, OSDI 2020, and the authors' open code
(`max_min_fairness_perf`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from knowledge.core.domain.types import Option
from scheduler.core.divide.bundles import movable
from scheduler.core.divide.capacity import Capacity
from scheduler.core.divide.preferred import Preferred, preferred_options
from scheduler.core.divide.repack import realize
from scheduler.core.divide.rules import DivideRules
from scheduler.core.divide.time_shares import ITERATIONS, TimeShares, time_shares
from scheduler.core.placement.fit import FreeGpus, Placement
from scheduler.core.types import ClusterState, Description, JobInfo, Plan

ByModel = Mapping[str, Mapping[str, float]]  # job -> GPU model -> seconds, or a share of time
Options = Mapping[str, Preferred]  # by job
NOTHING: Mapping[str, float] = {}
NO_SHARE = 1e-6  # below, a share is one of 0 that the program left
UNSOLVED = (
    f"Gavel's program took more than {ITERATIONS:,} steps, so that all jobs have equal shares of time until"
    " shares are found anew."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gavel:
    """`reset_s`: shares hold for at least this long, whichever jobs come or go."""

    name: str = "gavel"
    description: ClassVar[Description] = Description(
        summary="Divides time on each GPU model so that the worst-off job is as well off as possible; stops"
        " and resizes jobs.",
        order="linear program, max-min normalised throughput; shares of time by GPU model; resizes jobs",
        needs="tokens/s of each option",
        source="Gavel, OSDI 2020",
    )
    preempts: bool = True
    round_s: float | None = 360.0
    reset_s: float = 1920.0
    placement: Placement = Placement.BEST_FIT
    rules: DivideRules = field(default_factory=DivideRules)

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Give this round's GPUs to the jobs furthest behind their shares.

        Larger priorities go first.
        """
        everybody = list(state.jobs)
        jobs = movable(everybody, state.nodes, self.rules, now)
        free = FreeGpus(state.nodes, self.placement)
        left = Capacity.of(state, jobs)
        options = preferred_options(jobs, free, self.rules)
        gpus = {model: left.gpus[model, ""] for model in left.models}
        ledger, solved = _remembered(state.memory, everybody, now), {}
        if ledger is None or (now - ledger.since >= self.reset_s and ledger.is_old(jobs, gpus)):
            known = state.solved.get("shares")
            by_model = {job_id: preferred.by_model for job_id, preferred in options.items()}
            found = time_shares(jobs, by_model, left) if known is None else TimeShares(*known)
            solved = {"shares": list(found)}
            ledger = _Ledger(now, found.of_jobs, gpus, {}, found.solved)
        wishes = _wishes(jobs, options, ledger, left, (self.round_s or 1.0) / 2)
        actions = realize(state, jobs, wishes, self.placement)
        return Plan(actions, ledger.as_memory(now), solved, fallback="" if ledger.solved else UNSOLVED)


@dataclass(frozen=True, slots=True)
class _Ledger:
    """Shares of time as they are spent.

    It knows since when they hold, among which GPUs, and the seconds received since then.
    """

    since: float
    shares: ByModel
    gpus: Mapping[str, int]
    received: ByModel
    solved: bool = True  # else the program took too long, and all have equal shares

    def as_memory(self, now: float) -> dict[str, Any]:
        return {"at": now, "since": self.since, "shares": self.shares, "gpus": self.gpus,
                "received": self.received, "solved": self.solved}  # fmt: skip

    def is_old(self, jobs: Sequence[JobInfo], gpus: Mapping[str, int]) -> bool:
        """Do the shares belong to other jobs or GPUs?"""
        return self.gpus != gpus or self.shares.keys() != {job.id for job in jobs}


def _remembered(memory: Mapping[str, Any], jobs: Iterable[JobInfo], now: float) -> _Ledger | None:
    """Return the ledger of the last round; None: there is none, or nobody in it.

    It has the seconds that jobs have had in it.
    """
    if not memory.get("shares"):
        return None
    received = {job: dict(times) for job, times in memory["received"].items()}
    for job in jobs:
        if job.holds:
            times = received.setdefault(job.id, {})
            model = job.holds.option.gpu_model
            held_s = now - max(memory["at"], min(job.holds.since, now))
            times[model] = times.get(model, 0.0) + held_s
    return _Ledger(memory["since"], memory["shares"], memory["gpus"], received, memory["solved"])


def _wishes(
    jobs: Sequence[JobInfo], options: Options, ledger: _Ledger, left: Capacity, start_s: float
) -> dict[str, Option]:
    """Give away what is left, class by class.

    In each, jobs with a share of time on a GPU model go first there, those that are most behind it before
    others; so none takes a model on which it has no share while that of its share idles. What is left over
    then goes to any job without GPUs, the fastest model first, as to those that came after the shares were
    found. Ties go to the job that holds the option, then to the earlier arrival. `start_s` counts as received
    by everybody.
    """
    classes: dict[float, list[JobInfo]] = defaultdict(list)
    for job in jobs:
        classes[job.priority].append(job)
    wishes: dict[str, Option] = {}
    fastest = _fastest_first(options.values())
    for priority in sorted(classes, reverse=True):
        pairs = [(job, model) for job in classes[priority] for model in options[job.id].by_model]
        shared = [(job, model) for job, model in pairs if _share(job, model, ledger) > NO_SHARE]
        shared.sort(key=lambda pair: _turn(pair[0], pair[1], ledger, start_s))
        rest = [(job, model) for job, model in pairs if _share(job, model, ledger) <= NO_SHARE]
        rest.sort(key=lambda pair: (fastest[pair[1]], _turn(pair[0], pair[1], ledger, start_s)))
        for job, model in (*shared, *rest):
            option = options[job.id].by_model[model]
            if job.id not in wishes and left.has(option):
                wishes[job.id] = option
                left.take(option)
    return wishes


def _share(job: JobInfo, model: str, ledger: _Ledger) -> float:
    return ledger.shares.get(job.id, NOTHING).get(model, 0.0)


def _turn(job: JobInfo, model: str, ledger: _Ledger, start_s: float) -> tuple[float, bool, float, str]:
    share = _share(job, model, ledger)
    had_s = ledger.received.get(job.id, NOTHING).get(model, 0.0) + start_s
    holds = job.holds is not None and job.holds.option.gpu_model == model
    return -share / had_s, not holds, job.submitted_at, job.id


def _fastest_first(options: Iterable[Preferred]) -> dict[str, int]:
    """The place of each GPU model by the jobs' mean pace there, the fastest first."""
    paces: dict[str, list[float]] = defaultdict(list)
    for preferred in options:
        for model, pace in preferred.paces.items():
            paces[model].append(pace)
    ordered = sorted(paces, key=lambda model: (-sum(paces[model]) / len(paces[model]), model))
    return {model: place for place, model in enumerate(ordered)}


GAVEL = Gavel()
