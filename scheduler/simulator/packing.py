"""Two jobs on one set of GPUs, as Lucid packs them, in the simulator only.

A live GPU has one holder. A waiting job may share the GPUs of a running one that shares with no
other yet if both use the same number of GPUs, at most 8; if they run well together, each at 0.8
of its pace alone or more; and if its priority value (GPU-seconds left, small goes first) is at
most twice the host's. Both then run at the pace of the pair.
Source: Hu et al., Lucid, ASPLOS 2023, which undoes a pair that slows a job by more than a
fifth; here the pace of a pair is known before, so such a pair is never made.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from knowledge.core.domain.types import Option
from scheduler.core.remaining_work import remaining_gpu_s
from scheduler.core.types import JobInfo
from scheduler.simulator.inputs.cells import converted, number
from scheduler.simulator.inputs.files import Row
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.runs import Run

MOST_GPUS = 8
LEAST_PACE = 0.8  # of the pace alone
PATIENCE = 2.0  # how many times the host's priority value a guest's may be

# Lucid's sharing scores (0 tiny, 1 medium, 2 jumbo): how many of its 66 profiles have each, and the mean pace
# of a job beside a neighbour, by (own, neighbour), over its measured pairs. Sums above 2 are never packed.
_SCORES, _SHARES = (0, 1, 2), (25, 16, 25)
_PACES = {(0, 0): 1.0, (0, 1): 0.99, (1, 0): 0.99, (1, 1): 0.93, (0, 2): 0.96, (2, 0): 0.96}


class Pairs(Protocol):
    """The mutual slow-down of two jobs on the same GPUs."""

    def pace(self, job: TraceJob, beside: TraceJob) -> float | None:
        """Share of the pace alone that the job keeps; None: they cannot share."""
        ...


@dataclass(frozen=True, slots=True)
class StatedPairs:
    """Paces from Lucid's scores, for use where no pair was measured.

    Each job gets one of the scores by chance, the same for one seed.
    """

    seed: int = 0

    def pace(self, job: TraceJob, beside: TraceJob) -> float | None:
        return _PACES.get((self._score(job), self._score(beside)))

    def _score(self, job: TraceJob) -> int:
        return random.Random(f"{self.seed}/{job.profile or job.job_id}").choices(_SCORES, _SHARES)[0]


@dataclass(frozen=True, slots=True)
class MeasuredPairs:
    """Paces by (profile, neighbour's profile).

    Pairs that were not measured do not share.
    """

    paces: Mapping[tuple[str, str], float]

    def pace(self, job: TraceJob, beside: TraceJob) -> float | None:
        return self.paces.get((job.profile, beside.profile))


def read_pairs(rows: Iterable[Row]) -> MeasuredPairs:
    """Read a trace's `pairs.csv`.

    Its columns are profile_a, profile_b, rate_a, rate_b; rates are shares of the pace alone.
    Raises TraceError.
    """
    needs = "profile_a, profile_b, rate_a and rate_b"
    pairs = converted(rows, _pair, file="pairs.csv", needs=needs)
    return MeasuredPairs({names: pace for pair in pairs for names, pace in pair.items()})


def _pair(row: Row) -> dict[tuple[str, str], float]:
    paces = {}
    for own, other in (("a", "b"), ("b", "a")):
        rate = number(row, f"rate_{own}")
        if not 0 < rate <= 2:  # measured pairs are a little faster than alone now and then
            raise ValueError(f"rate_{own} is {rate:g}; give the share of the pace alone, 0 to 2")
        paces[row[f"profile_{own}"], row[f"profile_{other}"]] = rate
    return paces


@dataclass(slots=True)
class Packing:
    """Pairs of jobs that share GPUs, and candidates for more."""

    pairs: Pairs
    partner: dict[str, Run] = field(default_factory=dict)
    _alone: dict[int, dict[str, Run]] = field(default_factory=lambda: defaultdict(dict))
    packed: int = 0  # pairs made so far

    def starts(self, run: Run, host: Run | None) -> list[tuple[Run, float]]:
        """Note that a job starts, on GPUs of its own or on its host's.

        Returns the jobs whose pace changes, and their new pace.
        """
        if host is not None:
            return self._join(run, host)
        if len(run.gpus) <= MOST_GPUS:
            self._alone[len(run.gpus)][run.job.job_id] = run
        return []

    def host(self, job: JobInfo, option: Option, guest: TraceJob, now: float) -> Run | None:
        """Return the running job beside which this one keeps most of its pace.

        Ties go to the first started.
        """
        hosts = self._alone[option.gpus].values()
        fitting = [run for run in hosts if run.held.key == option.key and self._agree(job, guest, run, now)]
        return max(fitting, key=lambda run: self._pace(guest, run.job), default=None)

    def leaves(self, run: Run) -> Run | None:
        """Let a job go; return the one that keeps the GPUs, now alone on them."""
        self._alone[len(run.gpus)].pop(run.job.job_id, None)
        partner = self.partner.pop(run.job.job_id, None)
        run.factor = 1.0
        if partner is not None:
            del self.partner[partner.job.job_id]
            self.starts(partner, None)
        return partner

    def could_host(self) -> bool:
        return any(self._alone.values())

    def _join(self, guest: Run, host: Run) -> list[tuple[Run, float]]:
        self._alone[len(host.gpus)].pop(host.job.job_id)
        self.partner[guest.job.job_id], self.partner[host.job.job_id] = host, guest
        self.packed += 1
        return [(guest, self._pace(guest.job, host.job)), (host, self._pace(host.job, guest.job))]

    def _agree(self, job: JobInfo, guest: TraceJob, host: Run, now: float) -> bool:
        if min(self._pace(guest, host.job), self._pace(host.job, guest)) < LEAST_PACE:
            return False
        return remaining_gpu_s(job) <= PATIENCE * host.left_s(now, host.held) * len(host.gpus)

    def _pace(self, job: TraceJob, beside: TraceJob) -> float:
        return self.pairs.pace(job, beside) or 0.0


def guests(
    packing: Packing, waiting: Iterable[tuple[JobInfo, Run]], now: float
) -> Iterator[tuple[Run, Option, Run]]:
    """Yield (guest, its option, host) in the waiting jobs' order.

    Each guest starts before the next is asked for.
    """
    for job, run in waiting:
        if not packing.could_host():
            return
        for option in run.options:
            if host := packing.host(job, option, run.job, now):
                yield run, option, host
                break
