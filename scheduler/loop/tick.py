"""One turn of the scheduling loop: expire, look, decide, act."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from portal.clock import database_now
from scheduler import hints
from scheduler.core.policies import POLICIES
from scheduler.errors import SchedulerReplaced
from scheduler.loop import leadership as epochs
from scheduler.loop import leases, snapshot, timeouts
from scheduler.loop.apply import apply
from scheduler.selectors.policy import current_policy

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
    if after is not None and epochs.newest() > after:
        return TickReport(ran=False)
    epoch = epochs.acquire()
    if epoch is None:
        return TickReport(ran=False)
    kept = epoch.memory
    try:
        now = database_now()  # not before: another scheduler may have had a whole tick meanwhile
        leases.renew_leases_after_a_clock_step(epoch, now)
        web = leases.expire_leases(epoch, now)
        timeouts.enforce_all(epoch, web, now)
        policy = current_policy()
        # Kept by name: another policy, chosen by a setting or an upgrade, cannot read this one's memory.
        state = snapshot.take_snapshot(kept.get(policy, {}), now)
        plan = POLICIES[policy].decide(state, now.timestamp())
        started = apply(epoch, plan, database_now())
        kept = {policy: dict(plan.memory)}
    except SchedulerReplaced as replaced:
        log.warning("tick given up", extra={"reason": str(replaced)})
        return TickReport(ran=False)
    finally:
        epochs.release(epoch, kept)
    return TickReport(ran=True, started=started, waiting=len(plan.actions) - started)
