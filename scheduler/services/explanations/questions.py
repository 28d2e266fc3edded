"""Questions about logs are answered and kept for a while."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from knowledge.reading.logs.questions import LONGEST_QUESTION, LogAnswer
from portal.accounts.errors import TooBusy
from portal.accounts.models import User
from portal.turns import Shares
from scheduler.models import Job, LogQuestion
from scheduler.selectors.analysis.log_questions import ask_log, kept_answer, newest_log_piece

turns = Shares(1)  # of each person
KEEP = timedelta(days=90)
MOST = 50  # of a person and a job; older ones go


def answered(*, job: Job, asker: User, question: str, now: datetime) -> LogAnswer:
    """Answer a question about the job's log, and keep it with the answer.

    A person's questions are answered one at a time. Raises TooBusy.
    """
    question = question[:LONGEST_QUESTION]
    with turns.take(asker.pk) as free:
        if not free:
            raise TooBusy("Another question of yours is being answered; ask again in a moment.")
        log_end = newest_log_piece(job)
        kept = kept_answer(job, question, log_end, now)
        return kept or _answered_anew(job, asker, question, log_end, now)


def _answered_anew(job: Job, asker: User, question: str, log_end: int, now: datetime) -> LogAnswer:
    found = ask_log(job, question, now)
    with transaction.atomic():
        LogQuestion.objects.update_or_create(
            job=job,
            asker=asker,
            question=question,
            defaults={
                "topic": found.topic,
                "answer": found.text,
                "lines": [line._asdict() for line in found.lines],
                "log_end": log_end,
                "at": now,
            },
        )
        own = LogQuestion.objects.filter(job=job, asker=asker)
        own.filter(pk__in=list(own.values_list("pk", flat=True)[MOST:])).delete()
    return found


def forget_old_questions(now: datetime) -> int:
    """Delete questions that were last asked too long ago."""
    return LogQuestion.objects.filter(at__lt=now - KEEP).delete()[0]
