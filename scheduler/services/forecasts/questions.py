"""Asking when a job would start that is not submitted, within bounds.

A worker of the queue `predict` answers (`scheduler.loop.predict.start_questions`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from scheduler import hints
from scheduler.core.job_terms import JOB_TERMS
from scheduler.models import StartQuestion
from scheduler.services.jobs.request_json import request_json
from scheduler.services.jobs.verbs import check_request

MOST_OPEN = 3  # of a person
MOST_KEPT = 10
KEPT_FOR = timedelta(minutes=15)
SAME_FOR = timedelta(seconds=20)  # within which equal questions are one


def ask_start(*, owner: User, now: datetime, **request: Any) -> StartQuestion:
    """Keep the question for a worker.

    A person has at most three that are not answered: another one takes the place of the oldest. An equal
    one of the last 20 s is the same question. Raises BadParameters.
    """
    check_request(owner=owner, now=now, **request)
    content = request_json({name: value for name, value in request.items() if JOB_TERMS[name].plays})
    with transaction.atomic():
        own = list(StartQuestion.objects.select_for_update().filter(owner=owner).order_by("-id"))
        for one in own:
            if one.request == content and now - one.asked_at <= SAME_FOR:
                return one
        waiting = [one for one in own if one.answered_at is None]
        gone = {one.pk for one in (*waiting[MOST_OPEN - 1 :], *own[MOST_KEPT - 1 :])}
        StartQuestion.objects.filter(pk__in=gone).delete()
        made = StartQuestion.objects.create(owner=owner, request=content, asked_at=now)
        hints.answer_starts()
    return made


def forget_start_questions(now: datetime) -> int:
    """Forget those that nobody waits for any more, and return their number."""
    return StartQuestion.objects.filter(asked_at__lt=now - KEPT_FOR).delete()[0]
