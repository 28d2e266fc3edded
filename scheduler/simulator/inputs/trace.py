"""The trace schema: jobs as submitted, and the cluster that runs them.

One row per job; columns as in docs/simulator.md. Times are in s from the trace's own origin;
`gpus` may be a fraction (a share of one GPU), which the simulator rounds up because a GPU has
one holder.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from knowledge.core.domain.types import Goal
from knowledge.core.records import record
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import Topology


@record
class TraceJob:
    """A job as submitted.

    Either `duration_s` (at `gpus`) or `profile` and `work` say how long it takes.
    """

    job_id: str
    submit_s: float
    gpus: float
    user: str = ""
    group: str = ""  # virtual cluster or queue
    nodes: int = 0  # 0: as few as hold it
    gpu_type: str = ""  # empty: any; "a|b": either
    min_gpus: int = 0  # 0: as `gpus`
    max_gpus: int = 0
    duration_s: float | None = None
    work: float | None = None
    work_unit: str = ""
    profile: str = ""
    batch_size: int = 0
    tuning: str = ""
    model: str = ""
    recipe: str = ""
    goal: str = ""  # what "best" means for it; empty: as the simulation says
    priority: int = 0
    weight: float = 1.0
    deadline_s: float | None = None  # absolute
    slo: float | None = None  # the deadline as a multiple of the run time alone, where there is no other
    preemptible: bool = True
    max_run_s: float | None = None  # the longest that it may run, all its starts together
    restart_s: float | None = None  # None: as the simulation says
    begin_s: float | None = None  # it may not start before
    after: str = ""  # jobs that must succeed before: "A|B"
    after_ended: str = ""  # jobs that must end before
    array: str = ""  # its array, of which `array_limit` jobs may run at a time
    array_limit: int = 0  # 0: any number
    topology: str = ""  # automatic, best_effort, guaranteed: whether its GPUs shall lie close together
    topology_level: str = ""  # how close: nvlink, pcie, numa, socket or node
    status: str = ""
    pred_duration_s: float | None = None
    pred_source: str = ""

    @property
    def whole_gpus(self) -> int:
        return math.ceil(self.gpus)

    @property
    def least_gpus(self) -> int:
        return self.min_gpus or self.whole_gpus

    @property
    def most_gpus(self) -> int:
        return self.max_gpus or self.whole_gpus

    def closeness(self) -> tuple[Topology, TopologyLevel]:
        """The closeness that it asks for its GPUs, and the level of it."""
        if not self.topology and not self.topology_level:
            return _ANYWHERE
        level = TopologyLevel.of_word(self.topology_level) if self.topology_level else TopologyLevel.NODE
        return Topology(self.topology or Topology.NONE), level

    def may_have_to_wait(self) -> bool:
        """Is there anything but GPUs that it may have to wait for?"""
        return bool(self.begin_s is not None or self.after or self.after_ended or self.array_limit)

    def count_from(self, origin_s: float) -> None:
        """Count the submission from a trace's first job.

        For the importer, before anybody else has seen the job: a copy of each
        costs a tenth of a simulation.
        """
        self.submit_s -= origin_s  # type: ignore[misc]  # before it is frozen

    def problem(self) -> str | None:
        """Why this job could never be simulated on any cluster, or None."""
        if not 0 <= self.submit_s < math.inf:
            return f"submit_s is {self.submit_s:g}; it must be a finite number of seconds, 0 or more"
        if not 0 < self.gpus < math.inf:
            return f"gpus is {self.gpus:g}; a job needs more than 0"
        if self.duration_s is None and not self.profile:
            return "neither duration_s nor profile says how long it runs"
        if self.duration_s is not None and not 0 < self.duration_s < math.inf:
            return f"duration_s is {self.duration_s:g}; it must be finite and more than 0"
        if _seldom_said(self) == _UNSAID:
            return None
        return self._wrong_figure() or self._wrong_word() or self._wrong_gpus()

    def _wrong_gpus(self) -> str | None:
        if self.nodes > self.whole_gpus:
            return f"{self.nodes} nodes for {self.whole_gpus} GPUs; each node must hold one at least"
        if self.max_gpus and self.max_gpus < self.min_gpus:
            return f"max_gpus {self.max_gpus} is below min_gpus {self.min_gpus}"
        if not self.least_gpus <= self.whole_gpus <= self.most_gpus:
            return (
                f"gpus {self.whole_gpus} is not from min_gpus {self.least_gpus} to max_gpus {self.most_gpus}"
            )
        return None

    def _wrong_figure(self) -> str | None:
        for name, value in zip(_POSITIVE, _positive(self), strict=True):
            if value is not None and not 0 < value < math.inf:
                return f"{name} is {value:g}; it must be finite and more than 0"
        for name, value in zip(_NOT_NEGATIVE, _not_negative(self), strict=True):
            if value is not None and not 0 <= value < math.inf:
                return f"{name} is {value:g}; it must be finite and 0 or more"
        if self.deadline_s is not None and not math.isfinite(self.deadline_s):
            return f"deadline_s is {self.deadline_s:g}; it must be finite"
        return None

    def _wrong_word(self) -> str | None:
        for name, words in (("topology", list(Topology)), ("topology_level", _LEVELS)):
            value = getattr(self, name)
            if value and value not in words:
                return f"{name} is {value!r}; it must be empty, or one of {', '.join(words)}"
        if self.goal and self.goal not in set(Goal):
            return f"goal is {self.goal!r}; it must be empty, or one of {', '.join(Goal)}"
        insists = self.topology in (Topology.BEST_EFFORT, Topology.GUARANTEED)
        if insists != bool(self.topology_level):
            return "topology_level goes with topology best_effort or guaranteed, which need it"
        return None


_ANYWHERE = Topology.NONE, TopologyLevel.NODE
_LEVELS = [level.word for level in TopologyLevel]
_POSITIVE = ("work", "weight", "slo", "max_run_s")
_NOT_NEGATIVE = (
    "nodes", "min_gpus", "max_gpus", "restart_s", "pred_duration_s", "begin_s", "array_limit"
)  # fmt: skip
_positive, _not_negative = attrgetter(*_POSITIVE), attrgetter(*_NOT_NEGATIVE)
# Traces call method what we call tuning.
COLUMNS = {"method" if one.name == "tuning" else one.name: one.name for one in fields(TraceJob)}


def _seldom_said(job: TraceJob) -> tuple[object, ...]:
    """Figures and words that few traces state."""
    return (  # an `attrgetter` takes three times as long
        job.work, job.weight, job.slo, job.max_run_s, job.nodes, job.min_gpus, job.max_gpus, job.restart_s,
        job.pred_duration_s, job.begin_s, job.array_limit, job.deadline_s, job.topology, job.topology_level,
        job.goal,
    )  # fmt: skip


_UNSAID = _seldom_said(TraceJob(job_id="", submit_s=0.0, gpus=1.0))


def predecessors(job: TraceJob) -> list[str]:
    """The jobs that this one comes after."""
    return [name for names in (job.after, job.after_ended) for name in names.split("|") if name]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that is left out, and why. Rows count from 1, the header apart."""

    row: int
    job_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """From `t_s` on, `available` nodes of a pool (or one node: 0 or 1) can be used.

    stops: jobs on the others go back to their checkpoints; else they run to their ends there.
    """

    t_s: float
    where: str
    available: int
    stops: bool = True


@dataclass(frozen=True, slots=True)
class Closure:
    """From `from_s` until `until_s` a pool, or one node, is closed.

    group: the one that may use it nevertheless; empty: none.
    """

    from_s: float
    until_s: float
    where: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Jobs in the order of their submission, refused rows, and the source of both."""

    jobs: tuple[TraceJob, ...]
    refused: tuple[Refusal, ...] = ()
    capacity: tuple[CapacityChange, ...] = ()
    closures: tuple[Closure, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def span_s(self) -> float:
        """From the first to the last submission; at least 1 s."""
        return max(self.jobs[-1].submit_s - self.jobs[0].submit_s, 1.0) if self.jobs else 1.0


def offered_gpus(jobs: Iterable[tuple[TraceJob, float]], span_s: float) -> float:
    """Return the GPUs that would be busy on average if no job waited.

    That is the GPU-seconds asked for over the span of arrivals.
    jobs: each with its duration in s at the GPUs it asks for.
    """
    return sum(job.whole_gpus * duration_s for job, duration_s in jobs) / span_s
