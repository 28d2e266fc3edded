"""Questions about the log of a job's last attempt."""

from __future__ import annotations

from datetime import datetime

from knowledge.reading.logs.figures import read_figures
from knowledge.reading.logs.questions import LogAnswer, LogFacts, ask
from scheduler.models import Attempt, Job, LogQuestion
from scheduler.selectors.analysis.failures import explained, log_lines
from scheduler.selectors.figures.job import job_figures
from scheduler.states import TERMINAL, JobState

SHOWN_QUESTIONS = 5


def ask_log(job: Job, question: str, now: datetime) -> LogAnswer:
    """Answer from the log and from what the portal knows of the job."""
    attempt = Attempt.objects.filter(job=job).order_by("-fence").first()
    figures = job_figures(job, now)
    facts = LogFacts(
        state=figures.state,
        ended=job.state in TERMINAL,
        explanation=explained(job),
        left_s=figures.time_left_s,
        silent_s=_silent_s(job, attempt, now),
    )
    return ask(question, read_figures(log_lines(attempt) if attempt else ()), facts)


def _silent_s(job: Job, attempt: Attempt | None, now: datetime) -> float | None:
    """Since the job last told its progress, while it runs."""
    heard_at = (attempt.progress or {}).get("heard_at") if attempt else None
    return now.timestamp() - heard_at if heard_at and job.state == JobState.RUNNING else None


def past_questions(job: Job) -> list[LogQuestion]:
    """The newest questions that were understood, but for the very last one."""
    return list(LogQuestion.objects.filter(job=job).exclude(topic="")[1 : SHOWN_QUESTIONS + 1])
