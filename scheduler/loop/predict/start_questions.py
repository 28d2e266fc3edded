"""When a job would start that is not submitted, told to the person who asked.

The job is stored for the time of a snapshot, in a transaction that is rolled back: so its limits, options and
dependencies are those that a tick would see, and nobody else ever sees it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from scheduler import hints
from scheduler.core.ahead.forecast import calibrated, forecasts, play_all
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.job_terms import wants_spot
from scheduler.errors import BadParameters
from scheduler.loop.predict.start_forecasts import play_input
from scheduler.models import StartQuestion
from scheduler.selectors.figures.start_forecasts import judged_forecasts
from scheduler.services.forecasts.cpu_budget import CpuBudget
from scheduler.services.jobs.recommend import current_recommender
from scheduler.services.jobs.request_json import read_request
from scheduler.services.jobs.verbs import Prepared, prepare, store

log = logging.getLogger(__name__)
LEASE = timedelta(minutes=1)  # after which another worker takes a question up
AWAITED = timedelta(minutes=2)  # after which nobody waits for the answer
LONGEST_CPU_S = 3.0  # somebody waits for the answer
NO_NODE = "No registered node could run the job."
TROUBLE = "An internal error came between; the log of the worker has it. Ask again, or tell an administrator."
TOO_FAR = "It would start later than forecasts reach."


def answer_next(*, now: Callable[[], datetime]) -> StartQuestion | None:
    """Answer the question that has waited longest.

    None if there is none.
    now: the database's clock.
    """
    question = _take(now())
    if question is None:
        return None
    try:
        found = _answer(question, now())
    except BadParameters as wrong:
        found = {"trouble": str(wrong)[:500]}
    except Exception:  # an answer, too: otherwise nobody would be told, nor the next one asked
        log.exception("a start could not be forecast", extra={"question": question.pk})
        found = {"trouble": TROUBLE}
    StartQuestion.objects.filter(pk=question.pk).update(answered_at=now(), **found)
    hints.answer_starts()  # the next one
    return question


def _take(now: datetime) -> StartQuestion | None:
    free = Q(taken_at__isnull=True) | Q(taken_at__lt=now - LEASE)
    waiting = StartQuestion.objects.filter(free, answered_at__isnull=True, asked_at__gt=now - AWAITED)
    found = waiting.select_related("owner").order_by("asked_at", "id").first()
    if found is None or not waiting.filter(pk=found.pk).update(taken_at=now):
        return None
    return found


def _answer(question: StartQuestion, now: datetime) -> dict[str, Any]:
    """The fields to write into the row. Raises BadParameters."""
    owner = question.owner
    request = read_request(owner, question.request)
    recommender = current_recommender(spot=wants_spot(request))
    prepared = prepare(recommender, owner=owner, now=now, **request)
    given = _with_job(prepared, now)
    if not given.waiting:
        return {"trouble": NO_NODE}
    plays = play_all(given, more=CpuBudget(min(LONGEST_CPU_S, settings.FORECAST_CPU_S)).of_play)
    widths = calibrated(judged_forecasts(given.policy.name))
    forecast = forecasts(given, plays, widths).get(prepared.job.pk)
    if forecast is None:
        return {"trouble": TOO_FAR}
    return {"answer": {"start": asdict(forecast.start), "end": forecast.end and asdict(forecast.end)}}


def _with_job(prepared: Prepared, now: datetime) -> PlayInput:
    """The facts of now, as if the job had just been submitted."""
    with transaction.atomic():
        store([prepared])
        given = play_input(now)
        transaction.set_rollback(True)
    return replace(given, asked=frozenset({prepared.job.pk}))
