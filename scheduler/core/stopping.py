"""Why running jobs give up their GPUs, in words; the bounds of such stops."""

from __future__ import annotations

from enum import StrEnum
from math import floor
from typing import Protocol

SHARED = "Its GPUs go to other jobs in this round."


class StopReason(StrEnum):
    """Why a running job was stopped with a checkpoint, and was queued again or moved."""

    CLASS = "class"  # a job of a higher class goes first
    RANK = "rank"  # the policy ranks a job of its class, or a lower one, first
    GUARANTEE = "guarantee"  # its GPUs are guaranteed to another team
    LIMIT = "limit"  # a higher class takes its place at a limit of its team or owner
    DIVISION = "division"  # the policy divides all GPUs anew, and it gets none
    RESIZE = "resize"  # it is given more GPUs, fewer, or others of another model
    MOVE = "move"  # it is given other GPUs alike
    SPOT = "spot"  # it is cheaper to wait for spot nodes
    ADMINISTRATOR = "administrator"  # one returned it to the queue


# By which other jobs gain; the rest are for the job itself, or a person's.
FOR_OTHERS = frozenset(StopReason) - {
    StopReason.RESIZE, StopReason.MOVE, StopReason.SPOT, StopReason.ADMINISTRATOR,
}  # fmt: skip
# A resize also says from what to what, and an administrator their own words.
SENTENCES: dict[StopReason, str] = {
    StopReason.CLASS: "A job of a higher class needs its GPUs; this one goes on from its checkpoint.",
    StopReason.RANK: "A job that goes first needs its GPUs; this one goes on from its checkpoint.",
    StopReason.GUARANTEE: (
        "Its GPUs are guaranteed to another team, whose job needs them; this one goes on from its checkpoint."
    ),
    StopReason.LIMIT: "A job of a higher class needs its share; this one goes on from its checkpoint.",
    StopReason.DIVISION: f"{SHARED} This job continues from its checkpoint.",
    StopReason.MOVE: "It moves to other GPUs and goes on from its checkpoint.",
    StopReason.SPOT: "It is cheaper to wait for spot nodes; it goes on from its checkpoint.",
}


class StopRules(Protocol):
    """The bounds of a policy's stops of running jobs."""

    @property
    def preempts(self) -> bool:
        """Does it stop any?"""

    @property
    def limit(self) -> int | None:
        """Stops within a day after which a job is left alone; None: no number."""


def outranked(victim: float, gainer: float) -> StopReason:
    """Why a job is stopped for one that goes first, by the priorities of both.

    Within a class, those that an administrator moved to the front are no higher.
    """
    return StopReason.CLASS if floor(gainer) > floor(victim) else StopReason.RANK
