"""One turn of the scheduling loop: expire, look, decide, act."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from portal import disk
from portal.clock import database_now
from scheduler import hints
from scheduler.core.cycle.rounds import next_round
from scheduler.core.decisions.decision_json import PolicyInput
from scheduler.core.types import Plan, Start, Wait
from scheduler.errors import SchedulerReplaced
from scheduler.loop import leadership, leases, snapshot, timeouts
from scheduler.loop.apply import apply, wait_for_the_round
from scheduler.loop.deciding import decide
from scheduler.loop.pending import settle_pending
from scheduler.loop.recording import record
from scheduler.models import Epoch
from scheduler.rare_collections import rare_collections
from scheduler.selectors.policy import LivePolicy, live_policy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TickReport:
    """The result of a tick; `ran` is False when another one did it, or does."""

    ran: bool
    started: int = 0
    waiting: int = 0


@hints.merged()  # sent when the epoch is free again: a tick that comes sooner does nothing
@rare_collections()
def tick(*, after: int | None = None) -> TickReport:
    """Run one tick, unless another scheduler is in the middle of one.

    after: the newest tick when this one was asked for; if another has begun since, it has seen all there was.
    """
    disk.relieve()
    if after is not None and leadership.newest() > after:
        return TickReport(ran=False)
    epoch = leadership.acquire()
    if epoch is None:
        return TickReport(ran=False)
    try:
        now = database_now()  # not before: another scheduler may have had a whole tick meanwhile
        leases.renew_leases_after_a_clock_step(epoch, now)
        web = leases.expire_leases(epoch, now)
        timeouts.enforce_all(epoch, web, now)
        started = settle_pending(epoch, now)
        more, waiting = _round(epoch, live_policy(), now)
    except SchedulerReplaced as replaced:
        log.warning("tick given up", extra={"reason": str(replaced)})
        return TickReport(ran=False)
    finally:
        leadership.release(epoch)
    return TickReport(ran=True, started=started + more, waiting=waiting)


def _round(epoch: Epoch, live: LivePolicy, now: datetime) -> tuple[int, int]:
    """Let the policy decide, if its last round is over.

    Returns how many jobs started, and how many wait. A round goes on with the next tick until its plan is
    carried out. Where nobody is there to decide about, none begins, so that the first job to come does not
    wait.
    """
    policy = live.policy
    # Kept by name: another policy, chosen by a setting or an upgrade, cannot read this one's memory.
    last = epoch.round_at.timestamp() if epoch.round_at and policy.name in epoch.memory else None
    if next_round(last, policy.round_s, now.timestamp()) > now.timestamp():
        return 0, wait_for_the_round(epoch, policy)
    state = snapshot.take_snapshot(epoch.memory.get(policy.name, {}), now)
    plan = decide(policy, state, now.timestamp(), lambda: leases.expire_leases(epoch, database_now()))
    if plan is None:
        epoch.memory.setdefault(policy.name, {})
        epoch.round_at = now
        return 0, len(state.waiting)
    record(epoch, live, PolicyInput(state, now.timestamp()), plan)
    done = apply(epoch, state, plan, policy.name, database_now())
    told = {Epoch.FALLBACK: plan.fallback} if plan.fallback else {}
    epoch.memory = {policy.name: dict(plan.memory), Epoch.ORDER: _waiting(plan), **told}
    epoch.round_at = now if done.whole and state.jobs else None
    return done.started, sum(isinstance(action, Start | Wait) for action in plan.actions) - done.started


def _waiting(plan: Plan) -> list[str]:
    """The first of those that stay waiting, in the order in which the policy met them."""
    return [action.job for action in plan.actions if isinstance(action, Wait)][: Epoch.IN_ORDER]
