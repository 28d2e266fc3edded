"""The Celery tasks, each of which loads, calls and returns.

Losing, repeating or delaying one changes only latency.
"""

from __future__ import annotations

from celery import shared_task

from portal.clock import database_now
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.predict.job_changes import find_next
from scheduler.loop.predict.shadow import bring_up_to_date
from scheduler.loop.predict.start_forecasts import forecast_starts
from scheduler.loop.predict.start_questions import answer_next
from scheduler.loop.sweeps import sweep
from scheduler.loop.tick import tick
from scheduler.services.calibration.advance import advance_all
from scheduler.services.explanations.failures import keep_causes
from scheduler.services.markets.forecasts import keep_forecasts
from scheduler.services.markets.learning import learn_weights
from scheduler.services.markets.plans import keep_plans
from scheduler.services.markets.provisioning import look_after_markets
from scheduler.services.simulations.play import play_next


@shared_task(name="scheduler.tasks.tick", queue="control")
def run_tick(after: int | None = None) -> None:
    """Run one turn of the scheduling loop.

    Nothing is done if a turn has begun since this one was asked for (`after`).
    """
    tick(after=after)


@shared_task(name="scheduler.tasks.sweep", queue="control")
def run_sweep() -> None:
    """Housekeeping."""
    sweep(database_now())


@shared_task(name="scheduler.tasks.refresh_options", queue="work")
def run_option_refresh() -> None:
    """Compute stale options of waiting jobs."""
    refresh_options()


@shared_task(name="scheduler.tasks.explain_failures", queue="work")
def run_explanations() -> None:
    """Read from logs why attempts failed."""
    keep_causes(database_now())


@shared_task(name="scheduler.tasks.forecast_starts", queue="predict")
def run_start_forecasts() -> None:
    """Play the queue ahead, unless nothing has changed since it was played."""
    forecast_starts(database_now())


@shared_task(name="scheduler.tasks.find_changes", queue="predict")
def run_change_search() -> None:
    """Find what would help the next job that somebody looks at; mostly there is none."""
    find_next(database_now())


@shared_task(name="scheduler.tasks.answer_starts", queue="predict")
def run_start_answers() -> None:
    """Answer the next question about the start of a job; mostly there is none."""
    answer_next(now=database_now)


@shared_task(name="scheduler.tasks.simulate", queue="work")
def run_simulation() -> None:
    """Play the next policy of a simulation that waits.

    Most calls after a sweep find nothing to do.
    """
    play_next(now=database_now)


@shared_task(name="scheduler.tasks.calibrate", queue="work")
def run_calibrations() -> None:
    """Do what is due in calibrations of nodes; most calls find none that is open."""
    advance_all(now=database_now)


@shared_task(name="scheduler.tasks.markets", queue="work")
def run_markets() -> None:
    """Look after markets; most portals have none."""
    keep_plans(now=database_now())
    look_after_markets(now=database_now)
    keep_forecasts(now=database_now())
    learn_weights(now=database_now())


@shared_task(name="scheduler.tasks.shadow", queue="predict")
def run_shadow() -> None:
    """Bring the policy on probation up to date, if there is one."""
    bring_up_to_date(database_now())
