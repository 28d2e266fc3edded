"""Ground truth: how fast a job runs with an option.

Policies see only predictions of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from knowledge.core.domain.types import Option
from knowledge.core.records import record
from scheduler.core.placement.fit import Shares, equal_shares
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import GpuId
from scheduler.simulator.inputs.cells import converted, number, whole
from scheduler.simulator.inputs.files import Row
from scheduler.simulator.inputs.trace import TraceJob

_ONE = (1,)


@record(kw_only=False)
class Throughput:
    """Share of the whole job done per second, until a share done at which it changes.

    until: 1.0 if it never changes.
    """

    rate: float
    until: float = 1.0


def shares_of(option: Option, gpus: tuple[GpuId, ...]) -> Shares:
    """Return how many GPUs a job holds on each of its nodes, smallest first.

    They are as the option says if it holds none.
    """
    if not gpus:
        return equal_shares(option)[::-1]  # they come largest first
    if len(gpus) == 1:
        return _ONE
    nodes = [node for node, _ in gpus]
    return (len(nodes),) if len(set(nodes)) == 1 else tuple(sorted(Counter(nodes).values()))


class GroundTruth(Protocol):
    """Rates and costs as measured.

    A cost that was not measured is zero. Shares are of the whole job, 0 to 1.
    """

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        """Return the pace on these shares of nodes once `done` of the job is done.

        None: it does not run.
        """
        ...

    def left_s(self, job: TraceJob, option: Option, shares: Shares, done: float = 0.0) -> float | None:
        """Return the seconds from `done` to the end through all paces to come.

        Start-up is apart.

        None: it does not run.
        """
        seconds = 0.0
        while done < 1.0:
            pace = self.pace(job, option, shares, done)
            if pace is None:
                return None
            seconds += (pace.until - done) / pace.rate
            done = pace.until
        return seconds

    def startup_s(self, job: TraceJob, option: Option) -> float:
        """Seconds without progress at every start, the first one included."""
        return 0.0

    def kept_at(self, job: TraceJob, option: Option, level: TopologyLevel) -> float:
        """The share of its pace that it keeps where its GPUs lie no closer than this."""
        return 1.0

    def fails_after_s(self, job: TraceJob, option: Option) -> float:
        """The time for which an option that does not run holds its GPUs."""
        return 0.0

    def stretches(self, job: TraceJob) -> bool:
        """May the job run on other numbers of GPUs than it asked for?"""
        return False


@dataclass(frozen=True, slots=True)
class RecordedTruth(GroundTruth):
    """The trace recorded how long each job ran with the GPUs it asked for."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        if job.duration_s is None:
            return None
        return Throughput(1.0 / job.duration_s)

    def left_s(self, job: TraceJob, option: Option, shares: Shares, done: float = 0.0) -> float | None:
        return None if job.duration_s is None else (1.0 - done) * job.duration_s


@dataclass(frozen=True, slots=True)
class RateTruth(GroundTruth):
    """A table of measured rates by (profile, GPU model, GPUs).

    They are in units of the job's work per second.
    """

    rates: Mapping[tuple[str, str, int], float]

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        rate = self.rates.get((job.profile, option.gpu_model, option.gpus), 0.0)
        return Throughput(rate / job.work) if rate > 0 and job.work else None

    def stretches(self, job: TraceJob) -> bool:
        return job.least_gpus < job.most_gpus


def table_rates(rows: Iterable[Row]) -> RateTruth:
    """Read a trace's own `profiles.csv`.

    Its columns are profile, gpu_type, gpus and rate, in units of work per second. Raises
    TraceError.
    """
    needs = "profile, gpu_type, gpus and rate as numbers"
    return RateTruth(dict(converted(rows, _rate, file="profiles.csv", needs=needs)))


def _rate(row: Row) -> tuple[tuple[str, str, int], float]:
    return (row["profile"], row["gpu_type"], whole(row, "gpus")), number(row, "rate")


def gavel_rates(raw: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> RateTruth:
    """Read Gavel's published throughputs, in steps/s.

    They are {gpu: {"('job type', scale)": {"null": alone, ...}}}.
    """
    rates = {}
    for gpu_model, table in raw.items():
        for key, beside in table.items():
            name, _, scale = key.strip("()").rpartition(",")
            rates[name.strip().strip("'"), gpu_model, int(scale)] = float(beside["null"])
    return RateTruth(rates)
