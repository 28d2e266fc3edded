"""What a job's owner should know of it: warnings, and how its data were read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler.core.job_warnings import WARNINGS, Risk
from scheduler.models import Attempt, Job
from scheduler.states import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWarning:
    """A limit that the job will probably pass.

    It says what can be done, and since when that is likely.
    """

    code: str
    text: str
    remedy: str
    since: datetime

    @property
    def label(self) -> str:
        """A word or two for a list."""
        return self.code.replace("-", " ")


def job_warnings(job: Job, attempts: Sequence[Attempt]) -> tuple[JobWarning, ...]:
    """The warnings of the live attempt of a job that trains."""
    if job.state != JobState.RUNNING:
        return ()
    raised = [warning for attempt in attempts if attempt.ended_at is None for warning in attempt.warnings]
    return tuple(_warning(warning["code"], warning["since"]) for warning in raised)


def output_warnings(job: Job, attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """What is wrong with the output of a job that succeeded."""
    if job.state != JobState.SUCCEEDED:
        return ()
    return tuple(text for attempt in attempts for text in attempt.figures.output_warnings or ())


def data_notes(attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """What the newest attempt that read the data says of them."""
    told = (attempt.figures.data_notes for attempt in reversed(attempts))
    return next((notes for notes in told if notes), ())


def _warning(code: str, since: str) -> JobWarning:
    words = WARNINGS[Risk(code)]
    return JobWarning(code=code, text=words.text, remedy=words.remedy, since=datetime.fromisoformat(since))
