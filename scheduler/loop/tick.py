"""One turn of the scheduling loop: expire, look, decide, act."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from portal.clock import database_now
from scheduler.core.policies import POLICIES
from scheduler.errors import SchedulerReplaced
from scheduler.loop import deadlines, leases, snapshot
from scheduler.loop import epoch as epochs
from scheduler.loop.apply import apply
from scheduler.selectors.policy import current_policy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TickReport:
    """What a tick did; `ran` is False when another one was at work."""

    ran: bool
    started: int = 0
    waiting: int = 0


def tick() -> TickReport:
    """Run one tick, unless another scheduler is in the middle of one."""
    epoch = epochs.acquire()
    if epoch is None:
        return TickReport(ran=False)
    kept = epoch.memory
    try:
        now = (
            database_now()
        )  # read from here on alone: before, another scheduler's whole tick may lie between
        leases.mend_a_clock_set_back(epoch, now)
        web = leases.expire(epoch, now)
        deadlines.enforce(epoch, web, now)
        deadlines.end_what_a_bad_end_left(epoch, web, now)
        deadlines.heal_and_drain(epoch, now)
        policy = current_policy()
        # Kept by name: another policy, chosen by a setting or an upgrade, cannot read this one's memory.
        state = snapshot.take(kept.get(policy, {}), now)
        plan = POLICIES[policy].decide(state, now.timestamp())
        started = apply(epoch, plan, database_now())
        kept = {policy: dict(plan.memory)}
    except SchedulerReplaced as replaced:
        log.warning("tick given up", extra={"reason": str(replaced)})
        return TickReport(ran=False)
    finally:
        epochs.release(epoch, kept)
    return TickReport(ran=True, started=started, waiting=len(plan.actions) - started)
