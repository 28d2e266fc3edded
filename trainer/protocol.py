"""Messages between node and portal, and the spec that a node hands to its trainer.

Standard library only. `trainer.protocol_parsing` parses these messages. Times are durations in
seconds: no message carries a clock reading.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from trainer.self_tests import LinkTest, SpeedTest

PROTOCOL = 1
SUPPORTED_PROTOCOLS = (1,)

EXIT_NO_ROOM = 74  # the trainer could not write its result: a full disk, or one that is read-only
EXIT_STOPPED = 75  # the trainer saved a checkpoint on request and left; it can be resumed
EXIT_OOM = 76  # the trainer ran out of memory and said so in result.json

GONE = "gone"  # `stored` of a checkpoint that lay on the node alone and is deleted, with all before it

RANDOM_MODEL = "random/"  # before a model's name: its architecture with random weights, as `shape` says

MAX_REPORTS_PER_SYNC = 500
DEFAULT_LEASE_S = 90.0
MAX_LOG_BYTES = 64_000
NODE_KINDS = ("owned", "on_demand", "spot")
LONGEST_NOTICE_S = 86_400.0


class ProtocolError(ValueError):
    """A message that cannot be understood; `path` names the wrong field."""

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = path, message
        super().__init__(f"{path} {message}")


class TooMany(ProtocolError):
    """A list longer than one message may carry: send it in pieces."""


class Phase(StrEnum):
    """How far a claim is on its node."""

    ASSIGNED = "assigned"  # known to the portal only
    QUEUED = "queued"  # taken up, where trainings wait in a queue of the executor's own
    STARTING = "starting"  # taken up, or let go by that queue: inputs, process, imports, model
    RUNNING = "running"  # training steps
    DELIVERING = "delivering"  # the process has ended and its GPUs are free; its files are on their way
    ENDED = "ended"


class Outcome(StrEnum):
    """How a claim or an attempt ended."""

    SUCCEEDED = "succeeded"
    ERROR = "error"
    OOM = "oom"
    STOPPED = "stopped"
    LOST = "lost"
    DECLINED = "declined"
    TIMEOUT = "timeout"
    KILLED = "killed"
    CHECKPOINT = "checkpoint"  # what it was to go on from is lost or damaged
    DATA = "data"  # the portal lost or damaged its training data


class ReportKind(StrEnum):
    """Kinds of numbered reports."""

    START = "start"  # exact counts after tokenising: tokens_total, steps_total, startup_s
    PREPARE = "prepare"  # rows: tokenised so far; a start that goes on is given time
    STEP = "step"  # step, total_steps, step_s, saving_s: so far; the step metrics of trainer.step_metrics
    EVAL = "eval"  # step, evaluation_s: of this one; the step metrics of evaluations
    LOG = "log"  # text
    MEMORY = "memory"  # memory_bytes: peak so far
    CHECKPOINT = "checkpoint"  # step, files, stored
    RENDEZVOUS = "rendezvous"  # address
    RESULT = "result"  # the trainer's result.json


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that was or will be transferred.

    `path` is relative, `sha256` hexadecimal.
    """

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSite:
    """The place of a GPU in its node, as the node's owner declares it.

    Each is the number of a group within the node; nvlink None: it has no such link.
    """

    socket: int
    numa: int
    switch: int
    nvlink: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU or CPU slot as found at enrolment.

    links: index of another GPU -> kind of link. pci: index of another GPU -> relation on the bus alone.
    numa, socket: what it is attached to. Agents from before these say nothing of them.
    """

    index: int
    model: str
    memory_bytes: int
    uuid: str = ""
    peak_flops: float | None = None
    bandwidth_bytes_s: float | None = None
    links: dict[str, str] = field(default_factory=dict)
    pci: dict[str, str] = field(default_factory=dict)
    numa: int | None = None
    socket: int | None = None
    declared: DeclaredSite | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """Facts of a node."""

    hostname: str
    cores: int
    memory_bytes: int
    gpus: tuple[GpuFacts, ...]
    software: dict[str, str] = field(default_factory=dict)
    disk_free_bytes: int = 0
    cannot_train: dict[str, str] = field(default_factory=dict)  # tuning -> why not, with the remedy
    kind: str = ""  # owned | on_demand | spot; empty: not said
    market: str = ""  # the name of the market where it was rented
    held_models: tuple[str, ...] | None = None  # of the hub; None: it downloads others, or does not say
    speed_tests: tuple[SpeedTest, ...] = ()  # the newest of each model of GPU
    link_tests: tuple[LinkTest, ...] = ()  # of one pair of GPUs for each way in which two relate
    link_problem: str = ""  # why there are none

    @property
    def has_gpus(self) -> bool:
        """Does it offer GPUs, rather than CPU slots?"""
        return self.gpus[0].model != "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrol:
    """A node's first message.

    It may be sent again: the same node token means the same node. An agent from before node
    tokens chooses none.
    """

    join_token: str
    protocol: int
    name: str
    facts: NodeFacts
    node_token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """A GPU's load now; util between 0 and 1."""

    index: int
    util: float
    memory_used_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One numbered report of a claim; `body` depends on the kind."""

    seq: int
    kind: ReportKind
    body: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimState:
    """A node's report of one claim.

    reason: why it ended; of one in a queue, why it waits there, as the executor says it.
    """

    claim: str
    fence: int
    phase: Phase
    outcome: Outcome | None = None
    exit_code: int | None = None
    reason: str = ""
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Heartbeat, reports and question in one.

    `facts` with the first message of each start, and when they changed.

    `boot_id` names a start of the agent, `seq` rises with what that says; 0 from agents that do not count.
    withdraw_in_s: until the node's provider takes it back; None: no notice of that is there.
    """

    protocol: int
    boot_id: str
    seq: int = 0
    claims: tuple[ClaimState, ...] = ()
    gpus: tuple[GpuUse, ...] = ()
    facts: NodeFacts | None = None
    withdraw_in_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """The checkpoint to go on from.

    stored: portal (fetch `files` as inputs `resume/PATH`) or node (it lies in the run directory
    of the claim `claim` of this node).
    """

    step: int
    stored: str
    claim: str
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a claim's training is given.

    flavor: of those that an engine offers; empty where there is one only. cores, memory_bytes: of each node,
    GPUs' memory aside. run_s: how long it is expected to run at most; None: nobody knows.
    grace_s: how long it may take to save and leave when it is asked to stop.
    """

    flavor: str = ""
    nodes: int = 1
    gpus_per_node: int
    cores: int
    memory_bytes: int
    run_s: float | None = None
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """All that a node needs to train; RUN_DIR/spec.json holds it with `Local`."""

    job: str
    attempt: str
    claim: str
    fence: int
    recipe: str
    entry: str
    model: str
    params: dict[str, Any]  # every parameter of the recipe, resolved
    gpus: tuple[int, ...]  # indices on this node
    resources: Resources
    rank: int = 0  # of this node among the nodes of the attempt
    nodes: int = 1
    inputs: tuple[File, ...] = ()  # path: train.jsonl, validation.jsonl; fetched from claims/C/inputs/PATH
    resume: Resume | None = None
    checkpoint_every_s: float = 60.0
    upload_limit_bytes: int = 2_000_000_000
    hang_after_s: float = 1800.0  # no event for this long: the agent ends it as a timeout
    rendezvous: str = ""  # host:port of rank 0, several nodes only; the agent fills it in
    shape: dict[str, Any] = field(default_factory=dict)  # the config.json of a `random/` model


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOrder:
    """The portal's order for one claim. `spec` until the claim is taken up."""

    claim: str
    fence: int
    want: str = "run"  # run | stop
    stop_for: str = ""
    grace_s: float = 30.0
    spec: Spec | None = None
    acked_seq: int = 0
    rendezvous: str = ""  # several nodes: host:port, once the node of rank 0 has reported it
    error: str = ""  # stale_attempt | bad_report; bad_spec where the reader did not understand the spec
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReply:
    """The portal's answer; a claim that it does not list is stopped and forgotten."""

    next_sync_s: float
    draining: bool
    lease_s: float = DEFAULT_LEASE_S  # a node silent for longer is lost; between two tries it waits a third
    claims: tuple[ClaimOrder, ...] = ()


def to_json(message: Any) -> dict[str, Any]:
    """A message as plain values, without fields that are None."""
    return {key: value for key, value in asdict(message).items() if value is not None}
