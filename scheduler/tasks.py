"""The Celery door: load, call, return. Losing, repeating or delaying any of these changes only latency."""

from __future__ import annotations

from celery import shared_task

from portal.clock import database_now
from scheduler.loop.option_refresh import refresh_options as refresh
from scheduler.loop.sweeps import sweep as sweep_now
from scheduler.loop.tick import tick as tick_now
from scheduler.services.calibration.advance import advance_all
from scheduler.services.simulations.play import play_next


@shared_task(name="scheduler.tasks.tick", queue="control")
def tick(after: int | None = None) -> None:
    """One turn of the scheduling loop, unless one has begun since it was asked for (`after`)."""
    tick_now(after=after)


@shared_task(name="scheduler.tasks.sweep", queue="control")
def sweep() -> None:
    """Housekeeping."""
    sweep_now(database_now())


@shared_task(name="scheduler.tasks.refresh_options", queue="work")
def refresh_options() -> None:
    """Compute stale options of waiting jobs."""
    refresh()


@shared_task(name="scheduler.tasks.simulate", queue="work")
def simulate() -> None:
    """Play the next policy of a simulation that waits; most calls after a sweep find nothing to do."""
    play_next(now=database_now)


@shared_task(name="scheduler.tasks.calibrate", queue="work")
def calibrate() -> None:
    """Do what is due in calibrations of nodes; most calls find none that is open."""
    advance_all(now=database_now)
