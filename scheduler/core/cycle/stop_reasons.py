"""Why running jobs give up their GPUs: in a word to count, and in sentences."""

from __future__ import annotations

from enum import StrEnum
from math import floor

from scheduler.core.types import JobInfo

OUTRANKED = "A job that goes first needs its GPUs; this one goes on from its checkpoint."
OWED = "Its GPUs are guaranteed to another team, whose job needs them; this one goes on from its checkpoint."
NEEDED = "A job of a higher class needs its share; this one goes on from its checkpoint."
SHARED = "Its GPUs go to other jobs in this round."
DIVIDED = f"{SHARED} This job continues from its checkpoint."
WAITS_FOR_SPOT = "It is cheaper to wait for spot nodes; it goes on from its checkpoint."
MOVES = "It moves to other GPUs and goes on from its checkpoint."


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
OF_SENTENCES = {
    OUTRANKED: StopReason.RANK,
    OWED: StopReason.GUARANTEE,
    NEEDED: StopReason.LIMIT,
    DIVIDED: StopReason.DIVISION,
    WAITS_FOR_SPOT: StopReason.SPOT,
    MOVES: StopReason.MOVE,
}


def stop_reason(sentence: str, victim: JobInfo | None = None, gainer: JobInfo | None = None) -> StopReason:
    """Why a policy stops a job, by its sentence and by the job that gains from it.

    Within a class, those that an administrator moved to the front are no higher.
    """
    known = OF_SENTENCES.get(sentence, StopReason.RANK)
    if known is StopReason.RANK and victim and gainer and floor(gainer.priority) > floor(victim.priority):
        return StopReason.CLASS
    return known
