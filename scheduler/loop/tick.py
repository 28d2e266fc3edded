"""One turn of the scheduling loop: expire, look, decide, act."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from portal.clock import database_now
from scheduler import hints
from scheduler.core.types import Plan, Start, Wait
from scheduler.errors import SchedulerReplaced
from scheduler.loop import leadership, leases, snapshot, timeouts
from scheduler.loop.apply import apply
from scheduler.loop.pending import settle_pending
from scheduler.models import Epoch
from scheduler.selectors.policy import live_policy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TickReport:
    """The result of a tick; `ran` is False when another one did it, or does."""

    ran: bool
    started: int = 0
    waiting: int = 0


@hints.merged()  # sent when the epoch is free again: a tick that comes sooner does nothing
def tick(*, after: int | None = None) -> TickReport:
    """Run one tick, unless another scheduler is in the middle of one.

    after: the newest tick when this one was asked for; if another has begun since, it has seen all there was.
    """
    if after is not None and leadership.newest() > after:
        return TickReport(ran=False)
    epoch = leadership.acquire()
    if epoch is None:
        return TickReport(ran=False)
    kept = epoch.memory
    try:
        now = database_now()  # not before: another scheduler may have had a whole tick meanwhile
        leases.renew_leases_after_a_clock_step(epoch, now)
        web = leases.expire_leases(epoch, now)
        timeouts.enforce_all(epoch, web, now)
        started = settle_pending(epoch, now)
        policy = live_policy()
        # Kept by name: another policy, chosen by a setting or an upgrade, cannot read this one's memory.
        state = snapshot.take_snapshot(kept.get(policy.name, {}), now)
        plan = policy.decide(state, now.timestamp())
        applied = apply(epoch, state, plan, database_now())
        started += applied
        waiting = sum(isinstance(action, Start | Wait) for action in plan.actions) - applied
        kept = {policy.name: dict(plan.memory), Epoch.ORDER: _waiting(plan)}
    except SchedulerReplaced as replaced:
        log.warning("tick given up", extra={"reason": str(replaced)})
        return TickReport(ran=False)
    finally:
        leadership.release(epoch, kept)
    return TickReport(ran=True, started=started, waiting=waiting)


def _waiting(plan: Plan) -> list[str]:
    """The first of those that stay waiting, in the order in which the policy met them."""
    return [action.job for action in plan.actions if isinstance(action, Wait)][: Epoch.IN_ORDER]
