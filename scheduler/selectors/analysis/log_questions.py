"""Questions about the log of a job's last attempt."""

from __future__ import annotations

from datetime import datetime, timedelta

from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.logs.figures import read_figures
from knowledge.reading.logs.questions import LogAnswer, LogFacts, ask
from scheduler.models import Attempt, Job, LogQuestion
from scheduler.selectors.analysis.failures import explained
from scheduler.selectors.analysis.log_excerpts import LogExcerpt, excerpt_of, newest_piece
from scheduler.selectors.figures.job import job_figures
from scheduler.states import TERMINAL, JobState

SHOWN_QUESTIONS = 5
HOLDS = timedelta(seconds=10)  # an answer about a job that still runs
NOTHING = LogExcerpt(lines=(), whole=True)


def newest_log_piece(job: Job) -> int:
    """The id of the newest piece of the last attempt's log; 0 without one."""
    attempt = _last_attempt(job)
    return newest_piece(attempt) if attempt else 0


def kept_answer(job: Job, question: str, log_end: int, now: datetime) -> LogAnswer | None:
    """Return the answer to the same question that still holds, whoever asked."""
    row = LogQuestion.objects.filter(job=job, question=question).first()
    if row is None:
        return None
    holds = (
        row.log_end == log_end and row.at > job.state_since if job.state in TERMINAL else now - row.at < HOLDS
    )
    lines = [LogLine(**line) for line in row.lines]
    return LogAnswer(topic=row.topic, text=row.answer, lines=lines) if holds else None


def ask_log(job: Job, question: str, now: datetime) -> LogAnswer:
    """Answer from the two ends of the log and from what the portal knows of the job."""
    attempt = _last_attempt(job)
    figures = job_figures(job, now)
    facts = LogFacts(
        state=figures.state,
        ended=job.state in TERMINAL,
        explanation=explained(job),
        left_s=figures.time_left_s,
        silent_s=_silent_s(job, attempt, now),
        unheard_s=(now - figures.silent_since).total_seconds() if figures.silent_since else None,
    )
    excerpt = excerpt_of(attempt) if attempt else NOTHING
    return ask(question, read_figures(excerpt.lines), facts, note=excerpt.note)


def _last_attempt(job: Job) -> Attempt | None:
    return Attempt.objects.filter(job=job).order_by("-fence").first()


def _silent_s(job: Job, attempt: Attempt | None, now: datetime) -> float | None:
    """Since the job last told its progress, while it runs."""
    heard_at = (attempt.progress or {}).get("heard_at") if attempt else None
    return now.timestamp() - heard_at if heard_at and job.state == JobState.RUNNING else None


def past_questions(job: Job) -> list[LogQuestion]:
    """The newest questions that were understood, but for the very last one."""
    return list(LogQuestion.objects.filter(job=job).exclude(topic="")[1 : SHOWN_QUESTIONS + 1])
