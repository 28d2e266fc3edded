"""Playing of requested simulations, one policy per call.

A worker that dies loses one policy at most. A worker holds a lease and renews it while it
plays; `turn` rises with every lease, and all writes name it. A worker whose lease was taken
over therefore changes nothing any more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q

from scheduler import hints
from scheduler.errors import check_transition
from scheduler.models import Simulation
from scheduler.services.simulations.own_past import as_it_would_run, own_past
from scheduler.services.simulations.reproduction import reproduction
from scheduler.simulator.errors import SimulatorError
from scheduler.simulator.inputs.trace import Refusal
from scheduler.simulator.output import figures_of
from scheduler.simulator.world.predictions import Fidelity
from scheduler.states import OPEN_SIMULATIONS, SIMULATION_TRANSITIONS, SimulationState

log = logging.getLogger(__name__)
RENEW_S = 2.0
LIMIT_S = 60.0  # of one policy, by the clock on the wall: a worker has other things to do
TRIES = 3
SHOWN_REFUSALS = 20
Clock = Callable[[], datetime]


class LeaseLost(Exception):
    """Another worker plays this simulation now."""


class TooLong(SimulatorError):
    """A policy does not come to its end in time."""


def play_next(*, now: Clock) -> Simulation | None:
    """Play the next policy of the oldest simulation that no worker plays.

    None if there is none.
    now: the database's clock, by which leases are judged.
    """
    simulation = take_lease(now())
    if simulation is None:
        return None
    try:
        if simulation.tries > TRIES:
            raise SimulatorError(f"Its worker ended {TRIES} times without an answer, perhaps out of memory.")
        finish_policy(simulation, *_play(simulation, now), now=now())
    except LeaseLost:
        log.warning("simulation went on elsewhere", extra={"simulation": simulation.pk})
    except SimulatorError as error:
        _end(simulation, SimulationState.FAILED, str(error), now())
    hints.simulate()  # the next policy, or the next simulation
    return simulation


def take_lease(now: datetime) -> Simulation | None:
    free = Q(leased_until__isnull=True) | Q(leased_until__lt=now)
    found = Simulation.objects.filter(free, state__in=OPEN_SIMULATIONS).order_by("-state", "id").first()
    if found is None:  # "running" sorts after "queued": a simulation that was begun is ended first
        return None
    mine = Simulation.objects.filter(free, pk=found.pk, turn=found.turn, state=found.state)
    try:
        with transaction.atomic():
            taken = mine.update(
                state=SimulationState.RUNNING, turn=F("turn") + 1, tries=F("tries") + 1,
                leased_until=_lease_end(now),
            )  # fmt: skip
    except IntegrityError:  # another one runs, and one at a time is enough for a portal's worker
        return None
    return Simulation.objects.get(pk=found.pk) if taken else None


def _lease_end(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.SIMULATION_LEASE_S)


def _play(simulation: Simulation, now: Clock) -> tuple[dict[str, Any], list[Refusal]]:
    """The figures of the next policy, and the jobs that were left out.

    Before the first policy, the past is played as it was.
    """
    past = own_past(simulation)
    if simulation.reproduction is None:
        watch = _Watch(simulation, len(past.jobs), now, "The past as it was")
        _write(simulation, reproduction=reproduction(past, watch))
    policy = as_it_would_run(simulation.policies[len(simulation.results)])
    described = "" if simulation.as_it_was else simulation.cluster
    scenario, level = past.scenario(described), Fidelity(simulation.knowledge)
    began = time.process_time()
    _, metrics = scenario.simulate(
        policy, level, past.settings(policy, described), error=simulation.error, seed=simulation.seed,
        progress=_Watch(simulation, len(scenario.trace.jobs), now, policy.name),
    )  # fmt: skip
    figures = figures_of(scenario, level, policy.name, metrics, time.process_time() - began)
    return metrics.as_dict() | figures, scenario.refused


class _Watch:
    """Observer that is called after each simulated moment.

    It renews the lease, shows progress, and ends a simulation that takes too long.
    """

    def __init__(self, simulation: Simulation, jobs: int, now: Clock, what: str) -> None:
        self.simulation, self.jobs, self.now, self.what = simulation, jobs, now, what
        self.began = self.renewed = time.monotonic()

    def __call__(self, still_open: int) -> None:
        moment = time.monotonic()
        if moment - self.began > LIMIT_S:
            raise TooLong(f"{self.what} took longer than {LIMIT_S:g} s; shorten the range or leave it out.")
        if moment - self.renewed < RENEW_S:
            return
        self.renewed = moment
        played = len(self.simulation.results) + 1 - still_open / self.jobs
        progress = played / len(self.simulation.policies)
        _write(self.simulation, progress=progress, leased_until=_lease_end(self.now()))


def finish_policy(
    simulation: Simulation, figures: dict[str, Any], refused: list[Refusal], *, now: datetime
) -> None:
    results = [*simulation.results, figures]
    progress = len(results) / len(simulation.policies)
    refusals = [[one.job_id, one.reason] for one in refused[:SHOWN_REFUSALS]]
    _write(
        simulation, results=results, refusals=refusals, progress=progress, tries=0, leased_until=None
    )  # fmt: skip
    if len(results) == len(simulation.policies):
        _end(simulation, SimulationState.DONE, "", now)


def _end(simulation: Simulation, to: SimulationState, message: str, now: datetime) -> None:
    check_transition("simulation", SimulationState(simulation.state), to, SIMULATION_TRANSITIONS)
    _write(simulation, state=to, message=message[:1000], ended_at=now, leased_until=None)
    log.info("simulation ended", extra={"simulation": simulation.pk, "state": to.value})


def _write(simulation: Simulation, **values: Any) -> None:
    """Raises LeaseLost if another worker has taken over."""
    if not Simulation.objects.filter(pk=simulation.pk, turn=simulation.turn).update(**values):
        raise LeaseLost(simulation.pk)
