"""Advancing calibrations.

Each call does the work that is due and returns, so that a dead worker loses nothing. The due
work follows from rows alone. Every write names the `turn` it has seen: of two workers that do
the same thing at once one is refused, and the job that it was about to submit is never stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import F

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.types import Config
from knowledge.models import Execution
from knowledge.recommendations.recommender import RecommendationFailed
from scheduler.errors import IllegalTransition, SchedulerError, check_transition
from scheduler.models import Calibration, Job
from scheduler.selectors.cluster.calibrations import measured, open_calibrations, unfinished_jobs
from scheduler.services.calibration.plan import submit
from scheduler.services.jobs.recommend import current_recommender
from scheduler.services.jobs.verbs import cancel_job
from scheduler.states import CALIBRATION_TRANSITIONS, CalibrationState, NodeState

log = logging.getLogger(__name__)
AT_ONCE = 2  # jobs waiting or running: little is left when the time is up
TRIES = 3  # at computing the errors
Clock = Callable[[], datetime]


class CalibrationReplaced(Exception):
    """Someone else moved the calibration on meanwhile."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Median |ln measured - ln predicted| of the runs' rates.

    Each is predicted without itself and its likes.
    before: from none of the calibration's runs.
    after: from all the others.
    """

    runs: int
    before: float
    after: float


def advance_all(*, now: Clock) -> None:
    """Move every open calibration on."""
    for calibration in open_calibrations():
        try:
            advance(calibration, now=now())
        except CalibrationReplaced:
            log.info("calibration moved on elsewhere", extra={"calibration": calibration.pk})


def advance(calibration: Calibration, *, now: datetime) -> None:
    """Submit the runs that are due; judge and end after the last or the time limit.

    Raises CalibrationReplaced.
    """
    if calibration.state == CalibrationState.RUNNING:
        _go_on(calibration, now)
    if calibration.state == CalibrationState.STOPPING:
        _wind_up(calibration, now)


def _go_on(calibration: Calibration, now: datetime) -> None:
    submitted, planned = calibration.jobs.count(), len(calibration.plan)
    unfinished = unfinished_jobs(calibration).count()
    if hindrance := _hindrance(calibration):
        _stop(calibration, CalibrationState.CANCELLED, hindrance)
    elif now >= calibration.until:
        left = planned - submitted + unfinished
        reason = f"Time ran out; {left} of {planned} runs were unfinished." if left else ""
        _stop(calibration, CalibrationState.DONE, reason)
    elif submitted == planned and not unfinished:
        _stop(calibration, CalibrationState.DONE)
    else:
        due = calibration.plan[submitted : submitted + max(0, AT_ONCE - unfinished)]
        submit_next(calibration, [Config(**values) for values in due], now)


def _hindrance(calibration: Calibration) -> str:
    """Why there is no point in going on; empty as long as there is one."""
    node, asker = calibration.node, calibration.requested_by
    if node.removed_at or node.state != NodeState.READY:
        return f"The node was {'removed' if node.removed_at else node.state} before the end."
    return "" if asker.is_active else f"{asker.get_username()} is no longer active."


def submit_next(calibration: Calibration, configs: Sequence[Config], now: datetime) -> None:
    def note(job: Job) -> None:
        _write(calibration)
        calibration.jobs.add(job)

    @contextmanager
    def creation() -> Iterator[Callable[[Job], None]]:
        with transaction.atomic():
            yield note

    owner, file = calibration.requested_by, calibration.file
    try:
        for config in configs:
            submit(config=config, owner=owner, file=file, now=now, creation=creation)
    except SchedulerError as refused:
        reason = f"A run could not be submitted: {refused}"
        _stop(calibration, CalibrationState.FAILED, reason[:500])


def _wind_up(calibration: Calibration, now: datetime) -> None:
    """Cancel runs that have not ended; once nodes have confirmed, compare the errors.

    The calibration then ends.
    """
    for job in unfinished_jobs(calibration):
        try:
            cancel_job(job=job, actor=calibration.requested_by, now=now)
        except IllegalTransition:
            continue  # it ended meanwhile
    if unfinished_jobs(calibration).exists():
        return
    _write(calibration, tries=F("tries") + 1)
    found = _judged(calibration) if calibration.tries <= TRIES else None
    errors = (
        {"judged_runs": found.runs, "error_before": found.before, "error_after": found.after} if found else {}
    )
    move(calibration, CalibrationState(calibration.outcome), ended_at=now, **errors)
    log.info("calibration ended", extra={"calibration": calibration.pk, "state": calibration.state})


def _judged(calibration: Calibration) -> Errors | None:
    try:
        return errors_of(list(measured(calibration)))
    except RecommendationFailed as failed:
        log.warning("calibration not judged", extra={"calibration": calibration.pk, "reason": str(failed)})
        return None


def errors_of(runs: Sequence[Execution]) -> Errors | None:
    """Return how far the runs improve predictions of one another.

    None with fewer than two configurations.
    """
    catalogue = portal_catalogue(*(run.model_name for run in runs))
    usable = [run for run in runs if run.row.measured and catalogue.knows(run.config)]
    if len({run.config_hash for run in usable}) < 2:
        return None
    found = current_recommender().judged(usable)
    return Errors(len(found.after), median(found.before), median(found.after))


def _stop(calibration: Calibration, outcome: CalibrationState, reason: str = "") -> None:
    move(calibration, CalibrationState.STOPPING, outcome=outcome, reason=reason)


def move(calibration: Calibration, to: CalibrationState, **values: Any) -> None:
    """Raises IllegalTransition by the table, CalibrationReplaced as `_write` does."""
    check_transition("calibration", CalibrationState(calibration.state), to, CALIBRATION_TRANSITIONS)
    _write(calibration, state=to, **values)


def _write(calibration: Calibration, **values: Any) -> None:
    """Raises CalibrationReplaced if the row is no longer as it was read."""
    here = Calibration.objects.filter(pk=calibration.pk, turn=calibration.turn, ended_at__isnull=True)
    if not here.update(turn=F("turn") + 1, **values):
        raise CalibrationReplaced(calibration.pk)
    calibration.refresh_from_db()
