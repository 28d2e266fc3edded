"""The jobs for which a plan is a decision, and not the same answer again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from scheduler.core.decisions.decision_json import DIGEST_BYTES
from scheduler.core.types import Action, ClusterState, Plan, Preempt, Resize, Start, Wait
from scheduler.states import WaitState


class Verb(StrEnum):
    """The effect of a decision on a job."""

    START = "start"
    RESIZE = "resize"
    PREEMPT = "preempt"
    WAIT = "wait"


VERBS: dict[type[Action], Verb] = {
    Start: Verb.START,
    Resize: Verb.RESIZE,
    Preempt: Verb.PREEMPT,
    Wait: Verb.WAIT,
}


def news(plan: Plan, known_codes: Mapping[str, str]) -> list[Action]:
    """The plan's actions that start, stop, move or newly block a job.

    told: the code that each queued job was last told of why it waits, "" if none. A job that waits for
    options has its code from where that wait begins.
    """
    return [
        action
        for action in plan.actions
        if not isinstance(action, Wait)
        or (action.code is not WaitState.OPTIONS and known_codes.get(action.job, action.code) != action.code)
    ]


def news_digest(found: list[Action], state: ClusterState) -> str:
    """Tells decisions apart.

    It is the same for a decision that is made again, since it could not be carried out yet.
    """
    attempts = {job.id: job.restarts for job in state.jobs}
    text = repr([(action, attempts.get(action.job)) for action in found])
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
