"""Decisions read again, made again and explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django.db.models import QuerySet

from scheduler.core.decisions.decision_json import (
    Options,
    PackedInput,
    UnreadableDecision,
    unpack_options,
    unpack_plan,
)
from scheduler.core.decisions.replay import differences, policy_of, replay
from scheduler.core.decisions.summary import DecisionMoment, DecisionSummary, summarize
from scheduler.core.decisions.weighed import WeighedOption, weigh
from scheduler.core.types import Action, Resize, Start, Wait
from scheduler.models import Decision, DecisionJob, Job, Node, OptionSet
from scheduler.states import WaitState

NOT_CONSIDERED = {WaitState.HELD, WaitState.BEGIN_TIME, WaitState.DEPENDENCY}  # no option is weighed before
SLICE = 1000  # values a query: databases limit their number


class Replayed(NamedTuple):
    """A decision that was made again.

    `differences`: none if the plan is identical.
    """

    actions: int
    differences: list[str]


def replay_decision(decision: Decision) -> Replayed:
    """Let the policy decide again, by this release.

    Raises UnreadableDecision.
    """
    packed = PackedInput(bytes(decision.input))
    before = unpack_plan(bytes(decision.plan))
    given = packed.given(options_by_digest(packed.digests()))
    after = replay(decision.policy, decision.parameters, given)
    return Replayed(len(after.actions), list(differences(before, after)))


def options_by_digest(digests: Iterable[str]) -> Mapping[str, Options]:
    """The options that are kept under these digests.

    Raises UnreadableDecision.
    """
    names, found = sorted(digests), dict[str, Options]()
    for start in range(0, len(names), SLICE):
        rows = OptionSet.objects.filter(digest__in=names[start : start + SLICE])
        found |= {row.digest: unpack_options(bytes(row.options)) for row in rows}
    return found


class Explained(NamedTuple):
    """A decision for one job, in words, and the options that were weighed.

    unreadable: why nothing can be told of it; empty where it can.
    """

    row: DecisionJob
    summary: DecisionSummary
    options: list[WeighedOption]
    unreadable: str = ""


def decisions_of(job: Job) -> QuerySet[DecisionJob]:
    """The decisions about the job, newest first."""
    return DecisionJob.objects.filter(job=job).select_related("decision").order_by("-pk")


def explain(row: DecisionJob) -> Explained:
    """Why here, why now, and what else was weighed."""
    try:
        return _explained(row)
    except UnreadableDecision as wrong:
        return Explained(row, DecisionSummary("", ""), [], str(wrong))


def _explained(row: DecisionJob) -> Explained:
    decision = row.decision
    policy = policy_of(decision.policy, decision.parameters)
    packed, plan = PackedInput(bytes(decision.input)), unpack_plan(bytes(decision.plan))
    job = packed.job(row.job_id, options_by_digest(packed.digests([row.job_id])))
    action = next((action for action in plan.actions if action.job == row.job_id), None)
    if job is None or action is None:
        raise UnreadableDecision(f"It says nothing of the job {row.job_id}.")
    is_weighed = not isinstance(action, Wait) or action.code not in NOT_CONSIDERED
    weighed = weigh(policy, job, packed.nodes, plan, packed.now) if is_weighed else []
    moment = DecisionMoment(packed.now, plan, packed.waiting)
    return Explained(row, summarize(policy, job, action, weighed, moment, _names(action)), weighed)


def _names(action: Action) -> dict[str, str]:
    """The names of the nodes that a job was given."""
    if not isinstance(action, Start | Resize):
        return {}
    nodes = Node.objects.filter(pk__in={node for node, _ in action.gpus})
    return dict(nodes.values_list("pk", "name"))


__all__ = [
    "Explained",
    "Replayed",
    "UnreadableDecision",
    "decisions_of",
    "explain",
    "options_by_digest",
    "replay_decision",
]
