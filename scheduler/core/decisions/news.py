"""The jobs for which a plan is a decision, and not the same answer again."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import StrEnum

from scheduler.core.decisions.decision_json import DIGEST_BYTES
from scheduler.core.types import Action, ClusterState, JobInfo, Plan, Preempt, Resize, Start, Wait
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


def news_said(
    found: Sequence[Action], state: ClusterState, digests: Mapping[str, str]
) -> dict[Hashable, Action]:
    """News by its content, which is equal where a decision says the same again.

    digests: of the options of each job that has any.
    """
    jobs = {job.id: job for job in state.jobs}
    return {_content(action, jobs.get(action.job), digests): action for action in found}


def news_digest(said: Iterable[Hashable]) -> str:
    """Tells decisions apart by all that they say."""
    return hashlib.blake2b(repr(list(said)).encode(), digest_size=DIGEST_BYTES).hexdigest()


def _content(action: Action, job: JobInfo | None, digests: Mapping[str, str]) -> Hashable:
    """An action, with an option as its place among the job's: they are long."""
    attempts = job.restarts if job else None
    if not isinstance(action, Start | Resize):
        return action, attempts
    option: Hashable = action.option
    if job and job.id in digests and action.option in job.options:
        option = digests[job.id], job.options.index(action.option)
    return VERBS[type(action)].value, action.job, option, action.gpus, attempts
