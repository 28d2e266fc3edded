"""The one table of types of events, each with the JSON schema of its data.

Names are stable: programs go by them. A type begins with what it is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Schema = Mapping[str, Any]


class EventType(StrEnum):
    JOB_SUBMITTED = "job.submitted"
    JOB_ASSIGNED = "job.assigned"
    JOB_STARTING = "job.starting"
    JOB_STARTED = "job.started"
    JOB_STOPPING = "job.stopping"
    JOB_PAUSED = "job.paused"
    JOB_RESUMED = "job.resumed"
    JOB_PREEMPTED = "job.preempted"
    JOB_RETRYING = "job.retrying"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    JOB_CHANGED = "job.changed"
    JOB_PROMISE_CHANGED = "job.promise_changed"
    JOB_HELD = "job.held"
    JOB_RELEASED = "job.released"
    JOB_MOVED_TO_FRONT = "job.moved_to_the_front"
    JOB_MOVED_BACK = "job.moved_back"
    JOB_HANDED_OVER = "job.handed_over"
    JOB_CANCEL_TOO_LATE = "job.cancel_too_late"
    JOB_RESERVED = "job.reserved"
    JOB_RESERVATION_OVER = "job.reservation_over"
    JOB_CHECKPOINT = "job.checkpoint"
    JOB_CHECKPOINT_LOST = "job.checkpoint_lost"
    JOB_FILES_DELETED = "job.files_deleted"
    JOB_METRIC_LEFT_OUT = "job.metric_left_out"
    JOB_DEADLINE_AT_RISK = "job.deadline_at_risk"
    JOB_WARNING = "job.warning"
    JOB_WARNING_OVER = "job.warning_over"
    ARRAY_ENDED = "array.ended"
    NODE_ENROLLED = "node.enrolled"
    NODE_JOINED = "node.joined"
    NODE_LOST = "node.lost"
    NODE_BACK = "node.back"
    NODE_BLOCKED = "node.blocked"
    NODE_DECLINED = "node.declined"
    NODE_IMPLAUSIBLE = "node.implausible"
    NODE_DRAINING = "node.draining"
    NODE_DRAINED = "node.drained"
    NODE_RESUMED = "node.resumed"
    NODE_PRICE_CHANGED = "node.price_changed"
    NODE_KIND_CHANGED = "node.kind_changed"
    NODE_WITHDRAWN = "node.withdrawn"
    NODE_KEPT = "node.kept"
    NODE_GPUS_CHANGED = "node.gpus_changed"
    NODE_REMOVED = "node.removed"
    PREDICTOR_PROMOTED = "predictor.promoted"
    PREDICTOR_ROLLED_BACK = "predictor.rolled_back"
    PREDICTOR_DRIFT = "predictor.drift"
    QUOTA_CHANGED = "quota.changed"
    BUDGET_80 = "budget.80"
    MARKET_ADDED = "market.added"
    MARKET_CHANGED = "market.changed"
    MARKET_REMOVED = "market.removed"
    MARKET_FAILED = "market.failed"

    @property
    def about(self) -> str:
        """The kind of object that it is about."""
        return self.partition(".")[0]

    @property
    def words(self) -> str:
        """What happened, without the object."""
        return self.partition(".")[2].replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a type says.

    data: properties of its data, of which `needs` are always there; others: the schema of all further ones.
    moves: the job's state changes. by_hand: a person acts on a waiting job, which changes when it starts.
    private: its reason names jobs, folders or addresses that only administrators may know of.
    """

    text: str
    data: Mapping[str, Schema] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    others: Schema | bool = False
    moves: bool = False
    by_hand: bool = False
    private: bool = False

    @property
    def schema(self) -> Schema:
        """The JSON schema of its data."""
        return {
            "type": "object",
            "properties": dict(self.data),
            "required": list(self.needs),
            "additionalProperties": self.others,
        }


NUMBER: Schema = {"type": "number"}
PERHAPS: Schema = {"type": ["number", "null"]}
WHOLE: Schema = {"type": "integer", "minimum": 0}
NAME: Schema = {"type": "string", "minLength": 1}
GPUS: Schema = {
    "type": "array",
    "items": {"type": "array", "prefixItems": [NAME, WHOLE], "minItems": 2, "maxItems": 2},
}
OF_ATTEMPT: Mapping[str, Schema] = {"attempt": NAME, "outcome": NAME}
PLACED: Mapping[str, Schema] = {"option": NAME, "gpus": GPUS}
RISK: Mapping[str, Schema] = {"code": NAME, "chance": {"type": "number", "minimum": 0, "maximum": 1}}
BEFORE_AND_AFTER: Schema = {"type": "array", "minItems": 2, "maxItems": 2}
T = EventType

TYPES: Mapping[EventType, Meaning] = {
    T.JOB_SUBMITTED: Meaning(text="it was submitted"),
    T.JOB_ASSIGNED: Meaning(
        text="it was given GPUs", moves=True, data={"attempt": NAME, **PLACED},
        needs=("attempt", "option", "gpus"),
    ),
    T.JOB_STARTING: Meaning(text="its nodes took it up", moves=True),
    T.JOB_STARTED: Meaning(text="it trains", moves=True),
    T.JOB_STOPPING: Meaning(
        text="it was asked to stop with a checkpoint", moves=True, data={"stop_reason": NAME}
    ),
    T.JOB_PAUSED: Meaning(text="it is paused", moves=True, data=OF_ATTEMPT),
    T.JOB_RESUMED: Meaning(text="its pause was ended, and it waits again", moves=True),
    T.JOB_PREEMPTED: Meaning(
        text="its GPUs were taken back for other jobs or as a node drains, and it waits again", moves=True,
        data=OF_ATTEMPT,
    ),
    T.JOB_RETRYING: Meaning(text="an attempt ended badly, and it waits again", moves=True, data=OF_ATTEMPT),
    T.JOB_SUCCEEDED: Meaning(text="it has succeeded", moves=True, data=OF_ATTEMPT),
    T.JOB_FAILED: Meaning(text="it has failed", moves=True, data=OF_ATTEMPT),
    T.JOB_CANCELLED: Meaning(text="it is cancelled", moves=True, data=OF_ATTEMPT),
    T.JOB_CHANGED: Meaning(
        text="a person changed it: each field with its value before and after", by_hand=True,
        others=BEFORE_AND_AFTER,
    ),
    T.JOB_PROMISE_CHANGED: Meaning(
        text="a person changed it so that it was promised anew: each field with its value before and after",
        by_hand=True, others=BEFORE_AND_AFTER,
    ),
    T.JOB_HELD: Meaning(text="an administrator holds it", by_hand=True),
    T.JOB_RELEASED: Meaning(text="it is held no more", by_hand=True),
    T.JOB_MOVED_TO_FRONT: Meaning(text="it was moved to the front of its class", by_hand=True),
    T.JOB_MOVED_BACK: Meaning(text="it has its place by the policy again", by_hand=True),
    T.JOB_HANDED_OVER: Meaning(text="it has another owner"),
    T.JOB_CANCEL_TOO_LATE: Meaning(text="somebody wanted to cancel it, and it had ended already"),
    T.JOB_RESERVED: Meaning(
        text="GPUs are kept for it that other jobs are leaving", data=PLACED, needs=("option", "gpus")
    ),
    T.JOB_RESERVATION_OVER: Meaning(text="no GPUs are kept for it any more"),
    T.JOB_CHECKPOINT: Meaning(
        text="it has a checkpoint; `stored` says where, or `gone`", data={"stored": NAME}, needs=("stored",)
    ),
    T.JOB_CHECKPOINT_LOST: Meaning(
        text="a checkpoint cannot be used and is not offered again", data={"step": WHOLE}, needs=("step",)
    ),
    T.JOB_FILES_DELETED: Meaning(
        text="a person deleted the files that it left", data={"files": WHOLE, "bytes": WHOLE},
        needs=("files", "bytes"),
    ),
    T.JOB_METRIC_LEFT_OUT: Meaning(
        text="its node reported a figure that cannot be", data={"metric": NAME, "fence": WHOLE},
        needs=("metric", "fence"),
    ),
    T.JOB_DEADLINE_AT_RISK: Meaning(
        text="it will probably end after its deadline", data=RISK, needs=("code", "chance")
    ),
    T.JOB_WARNING: Meaning(
        text="it will probably pass another limit: its budget, its time limit or its GPUs' memory", data=RISK,
        needs=("code", "chance"),
    ),
    T.JOB_WARNING_OVER: Meaning(
        text="what it was warned of is not likely any more", data={"code": NAME}, needs=("code",)
    ),
    T.ARRAY_ENDED: Meaning(
        text="all of its jobs have ended; how many in which state",
        data={"succeeded": WHOLE, "failed": WHOLE, "cancelled": WHOLE},
        needs=("succeeded", "failed", "cancelled"),
    ),
    T.NODE_ENROLLED: Meaning(text="it got its token", private=True),
    T.NODE_JOINED: Meaning(text="its first sync"),
    T.NODE_LOST: Meaning(text="its lease ended"),
    T.NODE_BACK: Meaning(text="it reports nothing running"),
    T.NODE_BLOCKED: Meaning(text="it gets no work for now", private=True),
    T.NODE_DECLINED: Meaning(text="it declined a start", private=True),
    T.NODE_IMPLAUSIBLE: Meaning(text="it reported what cannot be", private=True),
    T.NODE_DRAINING: Meaning(text="it gets no new work, or will get none once it is heard of again"),
    T.NODE_DRAINED: Meaning(text="nothing runs there any more"),
    T.NODE_RESUMED: Meaning(text="an administrator resumed it"),
    T.NODE_PRICE_CHANGED: Meaning(text="an administrator changed its price"),
    T.NODE_KIND_CHANGED: Meaning(text="it was declared owned, on demand or spot, with its market"),
    T.NODE_WITHDRAWN: Meaning(text="its provider takes it back"),
    T.NODE_KEPT: Meaning(text="its provider does not take it back after all"),
    T.NODE_GPUS_CHANGED: Meaning(text="others of its GPUs are in place, or one is another node's now"),
    T.NODE_REMOVED: Meaning(text="it was taken out"),
    T.PREDICTOR_PROMOTED: Meaning(text="it answers now"),
    T.PREDICTOR_ROLLED_BACK: Meaning(
        text="it answers again, as the one that was promoted after it was undone", data={"undone": WHOLE},
        needs=("undone",),
    ),
    T.PREDICTOR_DRIFT: Meaning(
        text="promises of recent runs do not hold as they should",
        data={"runs": WHOLE, "coverage": PERHAPS, "median_error": PERHAPS},
        needs=("runs", "coverage", "median_error"),
    ),
    T.QUOTA_CHANGED: Meaning(
        text="the quotas of a team, or the limits of a person or of everybody, are others now",
        others=True,
    ),
    T.BUDGET_80: Meaning(
        text="a person's jobs have used 80 % of the GPU-hours of the month",
        data={"month": NAME, "used_gpu_hours": NUMBER, "limit_gpu_hours": NUMBER},
        needs=("month", "used_gpu_hours", "limit_gpu_hours"),
    ),
    T.MARKET_ADDED: Meaning(text="an administrator added it, with these terms", others=True),
    T.MARKET_CHANGED: Meaning(text="an administrator changed these of its terms", others=True),
    T.MARKET_REMOVED: Meaning(text="an administrator removed it; its last terms", others=True),
    T.MARKET_FAILED: Meaning(text="its provisioner failed and is not asked for a while"),
}  # fmt: skip

EVERYBODY = "everybody"  # the object of what concerns all people


def subject(about: str, number: int) -> str:
    """The id of an object that has a number alone, e.g. `team-5`."""
    return f"{about}-{number}"


MOVES = frozenset(type for type, meaning in TYPES.items() if meaning.moves)
BY_HAND = frozenset(type for type, meaning in TYPES.items() if meaning.by_hand)
PRIVATE = frozenset(type for type, meaning in TYPES.items() if meaning.private)
CHANGES = frozenset({T.JOB_CHANGED, T.JOB_PROMISE_CHANGED})  # of what a job asks for
