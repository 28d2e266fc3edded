"""The scheduler's words as plain values: the input and the output of a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from knowledge.core.domain.types import Goal, Option
from knowledge.core.records import record
from scheduler.core.limits import NO_TEAM, Limits, Window
from scheduler.core.market.types import MarketView, NodeAction, NodeTerms
from scheduler.core.stopping import StopReason, StopRules
from scheduler.states import WaitState

GpuId = tuple[str, int]  # (node, index)


class Topology(StrEnum):
    """How much a job insists on GPUs that lie close together."""

    AUTOMATIC = "automatic"  # if possible, at the level that each option gains from
    NONE = "none"
    BEST_EFFORT = "best_effort"
    GUARANTEED = "guaranteed"


class GpuSite(NamedTuple):
    """The place of a GPU in its node.

    Ids are unique within the node. `nvlink` None: there is no such link.
    """

    socket: int
    numa: int
    switch: int
    nvlink: int | None = None


@record
class Holding:
    """The allocation of a running job: its option, its GPUs, and since when (s).

    left_s: until it ends, corrected by what was measured; None: only the promise is known.
    """

    option: Option
    gpus: tuple[GpuId, ...]
    since: float
    left_s: float | None = None


@record
class JobInfo:
    """A job as policies see it, with the options that knowledge gave it, best first.

    It waits unless it holds GPUs. Times are in s.
    """

    id: str
    submitted_at: float
    options: tuple[Option, ...]
    goal: Goal = Goal.BALANCED
    user: str = ""
    team: str = NO_TEAM
    weight: float = 1.0  # of its user, for fair shares
    team_weight: float = 1.0  # of its team
    priority: float = 0  # larger goes first and may evict smaller; a fraction is a place before its class
    due_at: float | None = None
    work_left: float = 1.0  # share of the job that is still to do, 0 to 1
    attained_gpu_s: float = 0.0  # GPU-seconds received so far
    restart_s: float = 0.0  # what stopping and starting it again costs
    slower: float = 1.0  # so many times longer than promised it runs, as measured; only for jobs on markets
    preemptible: bool = True  # may it be stopped now?
    borrows: bool = True  # may it ever be, so that it may use what is guaranteed to others?
    preemptions: int = 0
    restarts: int = 0  # how often it started again, after preemptions, resizes and losses of nodes
    first_started_at: float | None = None
    stopped_at: float | None = None  # since when a job that ran before waits again
    preempted_at: float | None = None  # when it was last stopped for another job
    unsaved_s: float = 0.0  # running time since its last checkpoint, lost if it is stopped now
    host_memory_bytes: float = 0.0  # what it needs on each node; 0 is unknown
    topology: Topology = Topology.NONE
    level: int = 1  # the least topology level it asks for (scheduler.core.placement.topology)
    holds: Holding | None = None
    only_node: str | None = None  # its last checkpoint lies on this node alone
    avoids: frozenset[str] = frozenset()  # nodes that declined it lately and are not asked yet
    declined: str = ""  # which nodes those are, why and until when, in words for its owner
    closed: str = ""  # windows that keep it off nodes, in words for its owner
    no_option: str = ""  # why no registered node can run it, in words for its owner
    nodes_away: str = ""  # which nodes that could run it are out of service, in words for its owner
    held: str = ""  # why an administrator holds it, in words for its owner
    begins_at: float | None = None  # it may not start before
    array: str = ""  # the array that it belongs to
    array_limit: int = 0  # how many jobs of it may run at a time; 0: any number
    awaits: tuple[str, ...] = ()  # jobs, and whole arrays, that must end before it may start
    hold: str = ""  # why it waits for new options and may not start, in words for its owner
    dearer: str = ""  # why it leaves out GPUs that cost more than it may, in words for its owner
    spot: bool = False  # may it use nodes that can be withdrawn at any time?
    budget: float | None = None  # money that it may cost in all
    spent: float = 0.0  # money so far
    run_left_s: float | None = None  # how long it may still run; None: any time

    @property
    def releases_in_s(self) -> float | None:
        """When a running job will end; None where nothing is predicted.

        It is as measured, else by its promise, and by its time limit at the latest.
        """
        if self.holds is None:
            return None
        left_s = self.holds.left_s
        if left_s is None:
            promised_s = self.holds.option.duration_s.value
            left_s = self.work_left * promised_s if promised_s > 0 else None
        known = [seconds for seconds in (left_s, self.run_left_s) if seconds is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node's GPUs of one model, as policies see it; `free`: those no job holds."""

    id: str
    gpu_model: str
    total: int
    free: tuple[int, ...]
    ready: bool = True
    free_memory_bytes: float = 0.0  # of the host; 0 is unknown
    gpu_memory_bytes: float = 0.0  # of its smallest GPU; 0 is unknown
    price_per_gpu_hour: float = 0.0  # 0 is no price
    cannot_train: frozenset[str] = frozenset()  # tunings
    sites: tuple[GpuSite, ...] = ()  # by GPU index; empty: nothing is known but the node
    kind: NodeTerms = NodeTerms.OWNED
    market: str = ""  # the name of the market that it comes from
    withdraw_in_s: float | None = None  # until a spot node is taken away; None: no notice was given

    def suits(self, option: Option) -> bool:
        """May the option run here, by tuning, price and the memory it was chosen for?"""
        price, memory = option.price_per_gpu_hour, option.gpu_memory_bytes
        return (
            option.config.tuning not in self.cannot_train
            and (price is None or self.price_per_gpu_hour <= price)
            and (memory is None or not self.gpu_memory_bytes or self.gpu_memory_bytes >= memory)
        )


class ExpectedRelease(NamedTuple):
    """GPUs that a running job will release, with the predicted seconds and its option."""

    in_s: float
    gpus: tuple[GpuId, ...]
    option: Option


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Everything that a policy may know at one moment.

    solved: what a solver found in this state before (`Plan.solved`); it is taken instead of solving. Kept
    of a whole decision, in which a policy may be asked several times, it goes by the number of the time.
    limits, windows: kept for every policy (scheduler.core.quotas and .windows), which need not look at them.
    used: decayed GPU-seconds by account (scheduler.core.ordering.decayed_use); None: only policies know.
    """

    jobs: Sequence[JobInfo]
    nodes: tuple[NodeInfo, ...]
    memory: Mapping[str, Any] = field(default_factory=dict)
    explain: bool = True  # False: leave the Waits out of the plan, which saves a simulation their cost
    solved: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    windows: tuple[Window, ...] = ()
    markets: tuple[MarketView, ...] = ()
    used: Mapping[str, float] | None = None

    @property
    def waiting(self) -> Sequence[JobInfo]:
        """Jobs that hold nothing."""
        return [job for job in self.jobs if job.holds is None]

    @property
    def running(self) -> Sequence[JobInfo]:
        """Jobs that hold GPUs.

        Policies ask when they need them, so that a state may be made on demand.
        """
        return [job for job in self.jobs if job.holds is not None]

    def kept_off(self, job: JobInfo) -> frozenset[str]:
        """Nodes that the job keeps away from for a while.

        Nodes that it may never use are not among them.
        """
        if not job.avoids or job.spot:
            return job.avoids
        return job.avoids - {node.id for node in self.nodes if node.kind is NodeTerms.SPOT}

    @property
    def releases(self) -> Sequence[ExpectedRelease]:
        """GPUs that running jobs will release, but for those without a predicted end."""
        return [
            ExpectedRelease(in_s, job.holds.gpus, job.holds.option)
            for job in self.running
            if job.holds is not None and (in_s := job.releases_in_s) is not None
        ]


@record(kw_only=False)
class Start:
    """Run this job with this option on these GPUs."""

    job: str
    option: Option
    gpus: tuple[GpuId, ...]


@record(kw_only=False)
class Preempt:
    """Take a running job's GPUs back with a checkpoint; it waits again."""

    job: str
    reason: StopReason


@record(kw_only=False)
class Resize:
    """Move a running job to another option or other GPUs, through a checkpoint."""

    job: str
    option: Option
    gpus: tuple[GpuId, ...]


@record(kw_only=False)
class Wait:
    """Leave this job waiting; `code` for programs, `reason` for its owner."""

    job: str
    code: WaitState
    reason: str


Action = Start | Wait | Preempt | Resize


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy's decision: actions in the order of application, and its memory.

    All GPUs of preempted and resized jobs are released before any Resize or Start takes GPUs.
    The memory is made of JSON values only. A running job without an action keeps what it holds.
    solved: what a solver with a time limit found, in JSON values: an equal state may bring another result.
    nodes: what is asked of markets. fallback: why it is not the policy's own best answer, in words.
    """

    actions: tuple[Action, ...]
    memory: Mapping[str, Any] = field(default_factory=dict)
    solved: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[NodeAction, ...] = ()
    fallback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A policy in words; docs/scheduling.md, the pages and REST show these."""

    summary: str  # one sentence for people who choose among policies
    order: str  # by what it orders jobs
    needs: str  # what it must know of them
    source: str


class Policy(Protocol):
    """A pure function of the cluster's state.

    Equal inputs give equal plans, what a solver found included.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> Description: ...

    @property
    def preempts(self) -> bool:
        """Does it stop or resize running jobs?"""

    @property
    def rules(self) -> StopRules | None:
        """The bounds of its stops; None: it knows none."""

    @property
    def round_s(self) -> float | None:
        """Seconds between decisions that are made although nothing happened.

        None: the policy decides on events alone.
        """

    def decide(self, state: ClusterState, now: float) -> Plan: ...
