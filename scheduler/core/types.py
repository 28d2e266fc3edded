"""The scheduler's words as plain values: what a policy sees and what it may decide.

Import the module as `types` where scheduler.models is in sight: both have a `Job`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from knowledge.core.domain.types import Goal, Option
from scheduler.states import WaitState

GpuId = tuple[str, int]  # (node, index)


class Topology(StrEnum):
    """How much a job insists on GPUs that lie close together."""

    NONE = "none"
    BEST_EFFORT = "best_effort"
    GUARANTEED = "guaranteed"


class GpuSite(NamedTuple):
    """Where a GPU sits in its node; ids are unique within the node. `nvlink` None: no such link."""

    socket: int
    numa: int
    switch: int
    nvlink: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The allocation of a running job: its option, its GPUs, and since when (s)."""

    option: Option
    gpus: tuple[GpuId, ...]
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job with the options knowledge gave it, best first; waiting unless it holds GPUs. Times in s."""

    id: str
    submitted_at: float
    options: tuple[Option, ...]
    goal: Goal = Goal.BALANCED
    user: str = ""
    weight: float = 1.0  # of its user, for fair shares
    priority: int = 0  # larger goes first and may evict smaller; equals are ranked by the policy
    due_at: float | None = None
    work_left: float = 1.0  # share of the job that is still to do, 0 to 1
    attained_gpu_s: float = 0.0  # GPU-seconds received so far
    restart_s: float = 0.0  # what stopping and starting it again costs
    preemptible: bool = True
    preemptions: int = 0
    restarts: int = 0  # how often it started again, after preemptions, resizes and losses of nodes
    first_started_at: float | None = None
    stopped_at: float | None = None  # since when a job that ran before waits again
    unsaved_s: float = 0.0  # running time since its last checkpoint, lost if it is stopped now
    host_memory_bytes: float = 0.0  # what it needs on each node; 0 is unknown
    topology: Topology = Topology.NONE
    level: int = 1  # the least topology level it asks for (scheduler.core.placement.topology.Level)
    holds: Holding | None = None
    only_node: str | None = None  # its last checkpoint lies on this node alone
    avoids: frozenset[str] = frozenset()  # nodes that declined it lately and are not asked yet
    declined: str = ""  # which nodes those are, why and until when, in words for its owner
    no_option: str = ""  # why no registered node can run it, in words for its owner
    hold: str = ""  # why it waits for new options and may not start, in words for its owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node's GPUs of one model: `free` are the indices nobody holds."""

    id: str
    gpu_model: str
    total: int
    free: tuple[int, ...]
    ready: bool = True
    free_memory_bytes: float = 0.0  # of the host; 0 is unknown
    cannot_train: frozenset[str] = frozenset()  # methods
    sites: tuple[GpuSite, ...] = ()  # by GPU index; empty: nothing is known but the node


class Release(NamedTuple):
    """GPUs that a running job will release, in how many predicted seconds, with its option."""

    in_s: float
    gpus: tuple[GpuId, ...]
    option: Option


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Everything a policy may know, at one moment: waiting and running jobs, nodes, its own memory."""

    jobs: Sequence[Job]
    nodes: tuple[Node, ...]
    memory: Mapping[str, Any] = field(default_factory=dict)
    explain: bool = True  # False: leave the Waits out of the plan, which saves a simulation their cost

    @property
    def waiting(self) -> Sequence[Job]:
        """Jobs that hold nothing."""
        return [job for job in self.jobs if job.holds is None]

    @property
    def running(self) -> Sequence[Job]:
        """Jobs that hold GPUs. Policies ask when they need it, so that a state may be made on demand."""
        return [job for job in self.jobs if job.holds is not None]

    @property
    def releases(self) -> Sequence[Release]:
        """GPUs that running jobs will release, by their promises; jobs without one are left out."""
        return [
            Release(job.work_left * job.holds.option.duration_s.value, job.holds.gpus, job.holds.option)
            for job in self.running
            if job.holds is not None and job.holds.option.duration_s.value > 0
        ]


@dataclass(frozen=True, slots=True)
class Start:
    """Run this job with this option on these GPUs."""

    job: str
    option: Option
    gpus: tuple[GpuId, ...]


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take a running job's GPUs back with a checkpoint; it waits again."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resize:
    """Move a running job to another option or other GPUs, through a checkpoint."""

    job: str
    option: Option
    gpus: tuple[GpuId, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave this job waiting; `code` for programs, `reason` for its owner."""

    job: str
    code: WaitState
    reason: str


Action = Start | Wait | Preempt | Resize


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy's decision: actions in the order in which to apply them, and its memory.

    All GPUs of preempted and resized jobs are released before any Resize or Start takes GPUs. The memory
    is made of JSON values only. A running job without an action keeps what it holds.
    """

    actions: tuple[Action, ...]
    memory: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A policy in words; docs/scheduling.md, the pages and REST show these."""

    summary: str  # one sentence for people who choose among policies
    order: str  # by what it orders jobs
    needs: str  # what it must know of them
    source: str


class Policy(Protocol):
    """A pure function of the cluster's state. Equal inputs give equal plans."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> Description: ...

    @property
    def preempts(self) -> bool:
        """Does it stop or resize running jobs? Such a policy cannot be chosen live yet."""
        ...

    @property
    def round_s(self) -> float | None:
        """How often it wants to decide although nothing happened (s); None: on events alone."""
        ...

    def decide(self, state: ClusterState, now: float) -> Plan: ...
