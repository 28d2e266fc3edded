"""Decisions kept, so that anybody can make them again and ask why.

A decision is kept before it is carried out. One that says the same again is not kept, nor is one that leaves
out some of it since that was carried out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from knowledge.selectors import active_predictor
from scheduler import hints
from scheduler.core.decisions.decision_json import PolicyInput, pack_input, pack_plan
from scheduler.core.decisions.news import VERBS, news, news_digest, news_said
from scheduler.core.types import Action, Plan, Preempt, Wait
from scheduler.loop import leadership
from scheduler.loop.options.option_sets import pack_all, store
from scheduler.models import Decision, DecisionJob, Epoch, Job
from scheduler.selectors.policy import LivePolicy
from scheduler.states import JobState
from trainer import __version__


class _Said(NamedTuple):
    """The news of a decision that this process has kept."""

    decision: int
    at: datetime
    news: frozenset[Hashable]


_said: _Said | None = None


def record(epoch: Epoch, live: LivePolicy, given: PolicyInput, plan: Plan) -> None:
    """Keep a decision if it is news for any job.

    given: what the policy was asked. An error is logged and holds up no decision. Raises SchedulerReplaced.
    """
    global _said
    found = news(plan, _known_codes() if any(isinstance(action, Wait) for action in plan.actions) else {})
    if not found:
        return
    options = pack_all(given.state)
    digests = {job: packed.digest for job, packed in options.items()}
    said = news_said(found, given.state, digests)
    with leadership.row(epoch, policy=live.policy.name):
        newest = Decision.objects.order_by("-id").only("pk", "at", "digest").first()
        before = _said_by(newest)
        fresh = [action for content, action in said.items() if content not in before]
        if fresh and (digest := news_digest(said)) != (newest.digest if newest else ""):
            decision = _kept(live, given, plan, digest, digests)
            DecisionJob.objects.bulk_create(_of_job(decision.pk, action) for action in fresh)
            store(options, decision, newest)
            hints.forecast_starts()
            _said = _Said(decision.pk, decision.at, frozenset(said))


def _said_by(decision: Decision | None) -> frozenset[Hashable]:
    """The news of the decision, as far as this process knows."""
    known = decision and _said and _said[:2] == (decision.pk, decision.at)
    return _said.news if _said and known else frozenset()


def _known_codes() -> dict[str, str]:
    """Which code each queued job was told of why it waits."""
    return dict(Job.objects.filter(state=JobState.QUEUED).values_list("pk", "wait_code"))


def _kept(
    live: LivePolicy, given: PolicyInput, plan: Plan, digest: str, digests: Mapping[str, str]
) -> Decision:
    """The decision's new row. digests: of the options that it names, by job."""
    predictor = active_predictor()
    solved = given._replace(state=replace(given.state, solved=plan.solved))
    packed, packed_plan = pack_input(solved, digests), pack_plan(plan)
    return Decision.objects.create(
        at=datetime.fromtimestamp(given.now, tz=UTC),
        policy=live.policy.name,
        parameters=live.parameters,
        predictor_version=predictor.number if predictor else None,
        release=__version__,
        digest=digest,
        size=len(packed) + len(packed_plan),
        input=packed,
        plan=packed_plan,
    )


def _of_job(decision: int, action: Action) -> DecisionJob:
    code = ""
    if isinstance(action, Wait | Preempt):
        code = action.code if isinstance(action, Wait) else action.reason
    return DecisionJob(decision_id=decision, job_id=action.job, verb=VERBS[type(action)], code=code)
