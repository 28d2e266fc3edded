"""A worker's forecast of the start of a job that is not submitted.

Only the person who asked reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from knowledge.core.domain.types import Interval
from portal.accounts.models import User
from scheduler.errors import NotFound
from scheduler.models import StartQuestion
from scheduler.selectors.figures.start_forecasts import STALE, Expected

PATIENCE = timedelta(seconds=30)  # after which no answer is expected any more
NO_WORKER = "No worker of the queue predict has taken the question up within 30 s. Ask your administrator."
NO_ANSWER = "The worker of the queue predict has not answered within 30 s. It may be busy; ask again."


class Stage(StrEnum):
    """The stage of a question."""

    COMPUTING = "computing"
    ANSWERED = "answered"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAnswer:
    """expected: unless there is none, for the reason in `trouble`."""

    id: str
    stage: Stage
    expected: Expected | None
    trouble: str


def start_answer(user: User, question_id: str, now: datetime) -> StartAnswer:
    """Raises NotFound for a question that is another person's, or forgotten."""
    question = StartQuestion.objects.filter(owner=user, pk=question_id).first()
    if question is None:
        raise NotFound(f"There is no question {question_id} of yours any more; ask again.")
    return as_answer(question, now)


def as_answer(question: StartQuestion, now: datetime) -> StartAnswer:
    """The question as its owner is told of it."""
    stage, trouble = Stage.COMPUTING, question.trouble
    if question.answered_at is not None:
        stage = Stage.ANSWERED
    elif now - question.asked_at > PATIENCE:
        stage, trouble = Stage.UNAVAILABLE, NO_ANSWER if question.taken_at else NO_WORKER
    return StartAnswer(id=question.pk, stage=stage, expected=_expected(question, now), trouble=trouble)


def _expected(question: StartQuestion, now: datetime) -> Expected | None:
    if question.answered_at is None or not question.answer:
        return None
    start = Interval(**question.answer["start"])
    end = Interval(**question.answer["end"]) if question.answer["end"] else None
    return Expected(
        made_at=question.answered_at,
        stale=question.answered_at + STALE < now,
        start_at=_moment(start.value),
        start_low=_moment(start.value if start.low is None else start.low),
        start_high=_moment(start.high) if start.high is not None else None,
        end_at=_moment(end.value) if end else None,
        end_low=_moment(end.low) if end and end.low is not None else None,
        end_high=_moment(end.high) if end and end.high is not None else None,
    )


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
