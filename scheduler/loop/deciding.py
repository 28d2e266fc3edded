"""A decision, asked for without holding up leases.

A policy may take long, such as one with a solver. It decides on a thread of its own, and what must not wait
is done meanwhile. A decision that takes too long is given up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread

from django.conf import settings

from scheduler.core.decisions.faults import faults
from scheduler.core.quotas import admission
from scheduler.core.types import ClusterState, Plan, Policy

LOOK_EVERY_S = 1.0
SLOW_S = 3.0
log = logging.getLogger(__name__)
_unfinished: list[Future[Plan]] = []  # given up, but nothing can end a thread


def decide(policy: Policy, state: ClusterState, now: float, meanwhile: Callable[[], object]) -> Plan | None:
    """Return the policy's plan within all limits.

    None if it takes longer than `DECIDE_FOR_S`.

    meanwhile: called every second while the policy decides; what it raises gives the decision up as well.
    """
    _unfinished[:] = [future for future in _unfinished if not future.done()]
    if _unfinished:
        log.error("no decision: one that was given up is still being made", extra={"policy": policy.name})
        return None
    future: Future[Plan] = Future()
    begun = time.monotonic()
    Thread(target=_decide, args=(future, policy, state, now), daemon=True, name="decision").start()
    while True:
        left = begun + settings.DECIDE_FOR_S - time.monotonic()
        try:
            plan = future.result(timeout=max(0.0, min(LOOK_EVERY_S, left)))
        except TimeoutError:
            if future.done():
                raise  # the policy's own
            if left <= 0:
                _give_up(future, policy)
                return None
            try:
                meanwhile()
            except Exception:
                _unfinished.append(future)
                raise
        else:
            break
    if (took := time.monotonic() - begun) > SLOW_S:
        log.warning("slow decision", extra={"policy": policy.name, "seconds": round(took, 1)})
    if plan.fallback:
        log.warning("the policy fell back", extra={"policy": policy.name, "why": plan.fallback})
    for wrong in faults(state, plan):  # the rows refuse it, too
        log.error(
            "an action of the plan can never be carried out", extra={"policy": policy.name, "why": wrong}
        )
    return plan


def _decide(future: Future[Plan], policy: Policy, state: ClusterState, now: float) -> None:
    try:
        future.set_result(admission.decide(policy, state, now))
    except Exception as wrong:  # noqa: BLE001 - the tick raises it
        future.set_exception(wrong)


def _give_up(future: Future[Plan], policy: Policy) -> None:
    _unfinished.append(future)
    about = {"policy": policy.name, "seconds": settings.DECIDE_FOR_S, "jobs": "left as they are"}
    log.error("decision given up: it took too long", extra=about)
