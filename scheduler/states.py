"""States, transitions, derived sets and budgets of jobs and nodes.

This one table says what they may do. docs/architecture.md, "Reliability", explains those of
jobs, and docs/node-lifecycle.md those of nodes. Only services.jobs.transitions assigns a job's
state, and services.nodes.state a node's.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

from trainer.protocol import Outcome as Outcome


class JobState(StrEnum):
    QUEUED = "queued"
    ASSIGNED = "assigned"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


BAD_OUTCOMES = tuple(one for one in Outcome if one not in (Outcome.SUCCEEDED, Outcome.STOPPED))


class StopFor(StrEnum):
    """Why a job is stopping; it decides what follows."""

    CANCEL = "cancel"
    PAUSE = "pause"
    PREEMPT = "preempt"
    DRAIN = "drain"
    TIME_LIMIT = "time-limit"


def is_preempting(state: str, stop_for: str) -> bool:
    """Does a job in this state leave its GPUs to another one, or move?"""
    return state == JobState.STOPPING and stop_for == StopFor.PREEMPT


class FailureCode(StrEnum):
    """The scheduler's own reasons to end a job; other causes are read from its log."""

    TIME_LIMIT = "time-limit"


class DependencyKind(StrEnum):
    """The fate that a job must have met before another may start."""

    SUCCEEDED = "succeeded"
    ENDED = "ended"  # in whatever way


class PriorityClass(IntEnum):
    """How urgent a job is.

    Higher classes go first, and may stop lower ones where the policy stops jobs.
    """

    LOW = -1
    NORMAL = 0
    HIGH = 1
    URGENT = 2

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def of_word(cls, word: str) -> PriorityClass:
        return cls[word.upper()]


class WaitState(StrEnum):
    """Why a queued job does not run yet.

    It is the code of its row and of REST, beside words for its owner.
    """

    NO_OPTION = "no-option"  # no registered node can run it
    NO_NODE = "no-node"  # nodes could, and none of them is ready
    DECLINED = "declined"  # the ready ones that could declined it lately
    CHECKPOINT_NODE = "checkpoint-node"  # the one node that has its checkpoint is not ready
    HELD = "held"  # an administrator holds it
    BEGIN_TIME = "begin-time"  # its owner wants it to begin later
    DEPENDENCY = "dependency"  # jobs that it comes after have not ended yet
    ARRAY_LIMIT = "array-limit"  # as many jobs of its array run as may at a time
    QUOTA_TEAM = "quota-team"  # its team holds what it may
    QUOTA_USER = "quota-user"  # its owner's jobs hold what they may
    HOURS_USER = "hours-user"  # its owner's GPU-hours of this month do not last for it
    WINDOW = "window"  # a window closes its nodes before it would end
    MARKET = "market"  # it waits for spot nodes, or for nodes that a market was asked for
    BUSY = "busy"  # other jobs hold what it needs
    BEHIND = "behind"  # what it needs is kept for jobs that go first
    ROUND = "round"  # the policy decides in rounds, and the next one has not begun
    PENDING = "pending"  # GPUs are kept for it that other jobs are leaving
    OPTIONS = "options"  # held until its options have been computed anew, which also ends this state


class NodeState(StrEnum):
    READY = "ready"
    DRAINING = "draining"
    DRAINED = "drained"
    LOST = "lost"
    BLOCKED = "blocked"


class Block(StrEnum):
    """Why a node is blocked; it decides what ends the block."""

    DECLINES = "declines"
    FLAPPING = "flapping"
    IDENTITY = "identity"  # two agents speak for one node
    UNCONFIRMED = "unconfirmed-stop"
    CHANGED = "changed-gpus"
    SHARED = "shared-gpus"  # another node offers one of them
    LIES = "implausible-reports"


# They last, through silence and other blocks, until the node's GPUs are in order.
STANDING = frozenset({Block.CHANGED, Block.SHARED})
# The node itself ends them, by what it reports.
ENDED_BY_REPORT = STANDING | {Block.UNCONFIRMED}

N = NodeState
NODE_TRANSITIONS: dict[NodeState, frozenset[NodeState]] = {
    N.READY: frozenset({N.DRAINING, N.LOST, N.BLOCKED}),
    N.DRAINING: frozenset({N.DRAINED, N.READY, N.LOST, N.BLOCKED}),
    N.DRAINED: frozenset({N.READY, N.LOST, N.BLOCKED}),
    N.LOST: frozenset({N.READY, N.DRAINING, N.BLOCKED}),
    N.BLOCKED: frozenset({N.READY, N.DRAINING, N.LOST, N.BLOCKED}),  # another block takes its place
}
IN_SERVICE = frozenset({N.READY, N.BLOCKED})  # a block is over soon, mostly by itself
REMOVABLE = frozenset({N.DRAINED, N.LOST, N.BLOCKED})  # they get no work


class CalibrationState(StrEnum):
    """A calibration that stops waits until its nodes have stopped its runs."""

    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


C = CalibrationState
CALIBRATION_TRANSITIONS: dict[CalibrationState, frozenset[CalibrationState]] = {
    C.RUNNING: frozenset({C.STOPPING}),
    C.STOPPING: frozenset({C.DONE, C.CANCELLED, C.FAILED}),
    C.DONE: frozenset(),
    C.CANCELLED: frozenset(),
    C.FAILED: frozenset(),
}


class SimulationState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


M = SimulationState
SIMULATION_TRANSITIONS: dict[SimulationState, frozenset[SimulationState]] = {
    M.QUEUED: frozenset({M.RUNNING}),
    M.RUNNING: frozenset({M.RUNNING, M.DONE, M.FAILED}),  # another worker goes on once the lease has run out
    M.DONE: frozenset(),
    M.FAILED: frozenset(),
}
OPEN_SIMULATIONS = frozenset(state for state, following in SIMULATION_TRANSITIONS.items() if following)


class Budget(StrEnum):
    """Which allowance of tries an outcome uses up."""

    NONE = "none"
    USER = "user"
    OOM = "oom"
    INFRASTRUCTURE = "infrastructure"
    DECLINES = "declines"


S = JobState
TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    S.QUEUED: frozenset({S.ASSIGNED, S.PAUSED, S.CANCELLED, S.FAILED}),
    S.ASSIGNED: frozenset({S.STARTING, S.STOPPING, S.QUEUED, S.FAILED}),
    S.STARTING: frozenset({S.RUNNING, S.STOPPING, S.QUEUED, S.FAILED}),
    S.RUNNING: frozenset({S.STOPPING, S.SUCCEEDED, S.FAILED, S.QUEUED}),
    S.STOPPING: frozenset({S.CANCELLED, S.PAUSED, S.QUEUED, S.SUCCEEDED, S.FAILED}),
    S.PAUSED: frozenset({S.QUEUED, S.CANCELLED}),
    S.SUCCEEDED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
}
TERMINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)
LIVE = frozenset({S.ASSIGNED, S.STARTING, S.RUNNING, S.STOPPING})  # has a live attempt
STOPPABLE = frozenset(state for state in LIVE if S.STOPPING in TRANSITIONS[state])

STOPPED_TO: dict[StopFor, JobState] = {
    StopFor.CANCEL: S.CANCELLED,
    StopFor.PAUSE: S.PAUSED,
    StopFor.PREEMPT: S.QUEUED,
    StopFor.DRAIN: S.QUEUED,
    StopFor.TIME_LIMIT: S.FAILED,
}

BUDGETS: dict[Outcome, Budget] = {
    Outcome.SUCCEEDED: Budget.NONE,
    Outcome.ERROR: Budget.USER,
    Outcome.OOM: Budget.OOM,
    Outcome.STOPPED: Budget.NONE,
    Outcome.LOST: Budget.INFRASTRUCTURE,
    Outcome.DECLINED: Budget.DECLINES,
    Outcome.TIMEOUT: Budget.INFRASTRUCTURE,
    Outcome.KILLED: Budget.INFRASTRUCTURE,
    Outcome.CHECKPOINT: Budget.INFRASTRUCTURE,
    Outcome.DATA: Budget.INFRASTRUCTURE,
}

# Declines are spaced out instead (scheduler.loop.declines): no job fails for nodes that are not fit.
UNLIMITED = frozenset({Budget.NONE, Budget.DECLINES})

FAILURE_CLASS: dict[Budget, str] = {
    Budget.NONE: "",
    Budget.USER: "user",
    Budget.OOM: "resource",
    Budget.INFRASTRUCTURE: "system",
    Budget.DECLINES: "",
}
FAILURE_CLASSES = tuple(dict.fromkeys(word for word in FAILURE_CLASS.values() if word))


QUEUED = S.QUEUED.value  # the public state in which a job waits
STOPPING_SHOWN = {
    StopFor.CANCEL: "cancelled",
    StopFor.PAUSE: "pausing",
    StopFor.DRAIN: "running",
    StopFor.TIME_LIMIT: "running",
}
SHOWN = {S.ASSIGNED: QUEUED, S.STARTING: "running"}


def public_state(state: JobState, stop_for: str) -> str:
    """The state as people and programs outside see it: the OpenAI names."""
    if state is S.STOPPING:
        return STOPPING_SHOWN.get(StopFor(stop_for), QUEUED)
    return SHOWN.get(state, state.value)
