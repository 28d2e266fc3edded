"""Decisions made again from what they were made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.core.decisions.decision_json import PolicyInput, UnreadableDecision
from scheduler.core.policies import POLICIES
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.quotas.admission import decide
from scheduler.core.types import Action, Plan, Policy


def replay(policy: str, parameters: Mapping[str, Any], given: PolicyInput) -> Plan:
    """The plan that the policy makes of this input today.

    Raises UnreadableDecision.
    """
    decides = policy_of(policy, parameters)
    try:
        return decide(decides, given.state, given.now)
    except (KeyError, TypeError, ValueError) as wrong:
        raise UnreadableDecision(f"{policy} of this release cannot read it: {wrong!r}.") from wrong


def policy_of(name: str, parameters: Mapping[str, Any]) -> Policy:
    """The policy as this release has it.

    Raises UnreadableDecision.
    """
    if name not in POLICIES:
        raise UnreadableDecision(f"This release has no policy {name}.")
    return with_parameters(POLICIES[name], parameters)


def differences(before: Plan, after: Plan) -> Iterator[str]:
    """The actions in which two plans differ, and whether their memory does.

    Identical plans have no difference.
    """
    one, other = _by_job(before), _by_job(after)
    for job in sorted(one.keys() | other.keys()):
        if one.get(job) != other.get(job):
            yield f"{job}: {_said(one.get(job))}, now {_said(other.get(job))}"
    if one == other and before.actions != after.actions:
        yield "the order of the actions"
    if before.nodes != after.nodes:
        yield "what is asked of markets"
    if before.fallback != after.fallback:
        yield "whether the policy fell back on a lesser answer"
    if json.loads(json.dumps(dict(before.memory))) != json.loads(json.dumps(dict(after.memory))):
        yield "the policy's memory"


def _by_job(plan: Plan) -> dict[str, Action]:
    return {action.job: action for action in plan.actions}


def _said(action: Action | None) -> str:
    return "nothing" if action is None else str(action)[:200]
