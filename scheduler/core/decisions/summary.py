"""A decision about one job in words: why here, and why now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from knowledge.core.domain.wording import counted, rough_time
from scheduler.core.cycle.wait_reasons import amount
from scheduler.core.decisions.weighed import OptionVerdict, WeighedOption
from scheduler.core.stopping import SENTENCES
from scheduler.core.types import Action, JobInfo, Plan, Policy, Preempt, Resize, Start, Wait


class DecisionSummary(NamedTuple):
    """Two sentences or more; `here` is about the GPUs, `now` about the moment."""

    here: str
    now: str


class DecisionMoment(NamedTuple):
    """When a decision was made, what it was, and how many jobs waited."""

    at: float
    plan: Plan
    waiting: int


def summarize(
    policy: Policy,
    job: JobInfo,
    action: Action,
    weighed: Sequence[WeighedOption],
    moment: DecisionMoment,
    names: Mapping[str, str],
) -> DecisionSummary:
    """Return the decision for the job in words.

    names: of the nodes that it was given. Other jobs are not named.
    """
    order = f"Under the policy {policy.name}, jobs are ordered by: {policy.description.order}."
    now = " ".join(filter(None, (_numbers(job, action, moment), order, moment.plan.fallback)))
    if isinstance(action, Wait):
        return DecisionSummary(action.reason, now)
    if isinstance(action, Preempt):
        return DecisionSummary(SENTENCES[action.reason], now)
    where = " and ".join(sorted({names.get(node, node) for node, _ in action.gpus}))
    given = "Moved to" if isinstance(action, Resize) else "Given"
    return DecisionSummary(f"{given} {amount(action.option)} on {where}: {_why(policy, job, weighed)}.", now)


def _numbers(job: JobInfo, action: Action, moment: DecisionMoment) -> str:
    """How long the job waited, and how many jobs the decision was about."""
    starts = sum(isinstance(one, Start) for one in moment.plan.actions)
    jobs = f"Of {counted(moment.waiting, 'job')} that waited then, {starts or 'none'} started."
    if not isinstance(action, Start):
        return jobs
    since = job.submitted_at if job.stopped_at is None else job.stopped_at
    return f"It had waited for {rough_time(max(0.0, moment.at - since))}. {jobs}"


def _why(policy: Policy, job: JobInfo, weighed: Sequence[WeighedOption]) -> str:
    """Why the option that it was given, and no other."""
    chosen = next((one for one in weighed if one.fate is OptionVerdict.CHOSEN), None)
    if chosen is None or chosen.score is None:
        return "it goes on with what it ran with"
    by = f"by its goal, {job.goal}"
    better = [one for one in weighed if one.score is not None and one.score < chosen.score]
    if not better:
        return f"the best of its options {by}"
    if all(one.fate is OptionVerdict.FULL for one in better):
        return f"the best of its options {by} for which there was room"
    return f"one of its options, chosen by {policy.name} so that all jobs are served best"
